/** Where the console is, such as `/windlass/console`, and the service that it belongs to, such as `/windlass/`. */
export const CONSOLE_PATH = new URL(document.baseURI).pathname.replace(/\/+$/, '');
export const SERVICE_PATH = CONSOLE_PATH.replace(/console$/, '');

/** The address of an operation, for links that a browser follows itself. */
export const apiPath = (path: string): string => `${SERVICE_PATH}api/${path}`;

/** The most characters of a name, from its end: the service takes 255, of which some count twice. */
const NAME = 120;

/** The address of an operation whose bytes browsers save under a name, also where the object store sends them. */
export const downloadPath = (path: string, name: string): string =>
  `${apiPath(path)}?download=${encodeURIComponent([...name].slice(-NAME).join(''))}`;
