/** What the examples are about, so that one leads to the next. */
export const SESSION = '01KB4T6Q2M8Z5V7W9X3Y1N0R4C';
export const JOB = '01KB4T7F9A6D2E4G8H0J3K5M7P';
export const VIDEO = '01KB4T8R1B3C5D7F9G2H4J6K8N';
export const PROJECT = '01KB4T9X4E6F8G0H2J4K6M8P0R';
export const MODEL = '01KB4TA27S9T1V3W5X7Y9Z1A3B';
export const UPLOAD = '01KB4TB6C5D7E9F1G3H5J7K9M1';
export const CREATED = '2026-11-20T09:30:00.000Z';
export const LATER = '2026-11-20T09:30:04.250Z';
export const EXPIRES = '2026-11-20T10:30:00.000Z';
/** One page that is the last. */
export const pageOf = <T>(...items: T[]) => ({ items, next: null });
