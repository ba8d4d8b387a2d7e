import type { JsonObject } from '../json.ts';
import { escapeHtml } from './html.ts';

interface Tried {
  path: string;
  method: string;
  parameters: JsonObject[];
  /** Media types of the body. */
  types: string[];
  example: unknown;
}

/** Whose login is used to try operations; shown where scripts run. */
export const LOGIN_FORM =
  '<form id="login-for-tries" hidden><label>To try operations: user <input name="user" autocomplete="username"></label> <label>password <input name="password" type="password" autocomplete="current-password"></label> <small>Empty: the login of this browser. Sent with what you try, and kept nowhere.</small></form>';

/** A form that sends an operation. People do not type bytes: an operation that takes only these has none. */
export function drawTry({ path, method, parameters, types, example }: Tried): string {
  const takesBytes = types.length > 0 && !types.includes('application/json');
  if (takesBytes || !['get', 'post', 'put', 'delete'].includes(method)) return '';
  const fields = parameters
    .filter(parameter => parameter.in !== 'header')
    .map(({ name, in: where, required }) => {
      const id = escapeHtml(name);
      return `<label><code>${id}</code> <input name="${id}" data-in="${escapeHtml(where)}"${required ? ' required' : ''}></label> `;
    });
  const body =
    types.length > 0
      ? `<textarea name="body" aria-label="Body" rows="6">${escapeHtml(JSON.stringify(example ?? {}, null, 2))}</textarea>`
      : '';
  return `<form class="try" hidden data-method="${method.toUpperCase()}" data-path="${escapeHtml(path)}"><h4>Try it</h4>${fields.join('')}${body}<p><button>Send</button></p><pre hidden></pre></form>`;
}
