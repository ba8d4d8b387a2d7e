export interface User {
  username: string;
  administrator: boolean;
  /** Increments with each change of the password. */
  version: number;
}
