/** Where the console is, such as `/windlass/console`, and the service that it belongs to, such as `/windlass/`. */
export const CONSOLE_PATH = new URL(document.baseURI).pathname.replace(/\/+$/, '');
export const SERVICE_PATH = CONSOLE_PATH.replace(/console$/, '');

/** The address of an operation, for links that a browser follows itself. */
export const apiPath = (path: string): string => `${SERVICE_PATH}api/${path}`;
