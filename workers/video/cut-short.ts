/** What is said of a file that ends before its picture does. */
export const cutShort = (bytes: Buffer) => `is cut short: it ends after ${bytes.length} bytes`;
