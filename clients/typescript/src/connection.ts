import type { Api } from './api.ts';
import type { Http } from './http.ts';

/** What all parts of a client share. */
export interface Connection {
  http: Http;
  api: Api;
}
