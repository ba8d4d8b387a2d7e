/**
 * Sends what the page's forms hold, to this origin only, with the name and password at the top of the page or else the
 * cookie of a login. Nothing is kept. Answers are shown as they come.
 */
export const SCRIPT = `
const SHOWN = 100000;
const prefix = location.pathname.replace(/\\/api\\/docs\\/?$/, '');
const login = document.getElementById('login-for-tries');
let running;
login.hidden = false;
login.addEventListener('submit', event => event.preventDefault());
for (const form of document.querySelectorAll('form.try')) {
  form.hidden = false;
  form.addEventListener('submit', event => {
    event.preventDefault();
    send(form).catch(error => show(form, String(error)));
  });
}

async function send(form) {
  running?.abort();
  running = new AbortController();
  const query = new URLSearchParams();
  let path = form.dataset.path;
  for (const { name, value, dataset } of form.elements) {
    if (dataset.in === 'path') path = path.replace('{' + name + '}', encodeURIComponent(value));
    if (dataset.in === 'query' && value !== '') query.append(name, value);
  }
  // A refusal is shown here, and not in a dialog of the browser's.
  const headers = { 'X-Requested-With': 'fetch' };
  const { user, password } = login.elements;
  if (user.value !== '') headers.Authorization = 'Basic ' + encode(user.value + ':' + password.value);
  const body = form.elements.body?.value;
  if (body) headers['Content-Type'] = 'application/json';
  const search = query.size > 0 ? '?' + query : '';
  form.dataset.state = 'sent';
  show(form, '…');
  const answer = await fetch(prefix + path + search, {
    method: form.dataset.method, headers, body: body || undefined, signal: running.signal,
  });
  let text = answer.status + ' ' + answer.statusText + '\\n' + (answer.headers.get('Content-Type') ?? '') + '\\n\\n';
  show(form, text);
  const decoder = new TextDecoder();
  for (const reader = answer.body?.getReader(); reader && text.length < SHOWN; ) {
    const { value, done } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    show(form, text);
    if (done) break;
  }
  show(form, pretty(text));
  form.dataset.state = 'whole';
  running.abort();
}

function show(form, text) {
  form.querySelector('pre').hidden = false;
  form.querySelector('pre').textContent = text;
}

function pretty(text) {
  const at = text.indexOf('\\n\\n') + 2;
  try {
    return text.slice(0, at) + JSON.stringify(JSON.parse(text.slice(at)), null, 2);
  } catch {
    return text;
  }
}

function encode(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
`;
