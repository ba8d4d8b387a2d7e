import type { RoutedOperation } from '../http/resource.ts';

/** GET /: what the service is and where to begin. */
export const SERVICE_INDEX = {
  name: 'Windlass',
  is: 'Hauls long work off the request path: commands on remote hosts over SSH, videos made from frames there, and big uploads that are parsed into models.',
  begin: {
    'POST /api/login':
      'username, password: cookies for a browser; programs use HTTP Basic or a token',
    'GET /api/users/-': 'who you are',
    'POST /api/users/-/tokens': 'a token for a program: name, scope',
  },
  remote: {
    'GET /api/hosts': 'hosts that sessions can be opened on',
    'POST /api/remotes': 'open a session: hostname, username, password or privateKey',
    'POST /api/remotes/launch': 'run a command: sid, command',
    'POST /api/remotes/(sid)/browse/(path)': 'list a folder there',
    'GET /api/remotes/(sid)/file/(path)': 'read a file there',
    'POST /api/remotes/(sid)/videos': 'make a video: content-type, images',
    'GET /api/remotes/(sid)/videos/(vsid)/status': 'its progress; without /status the video',
  },
  projects: {
    'POST /api/projects': 'make a project: name',
    'POST /api/projects/(pid)/models': 'make a model in it: model-type, name',
    'PUT /api/models/(mid)/parameters/(aid)': 'store a parameter: value',
    'GET /api/models/(mid)/tables/(aid)/rows': 'rows of a table, sorted and filtered',
    'GET /api/projects/(pid)/cache/(key)': 'a video that was cached',
    'POST /api/projects/(pid)/bookmarks': 'keep the state of a client',
    'POST /api/events/(event)': 'log what a user did',
  },
  uploads: {
    'POST /api/uploads': 'begin an upload: mid, parser, aids',
    'PUT /api/uploads/(uid)/files/(fid)/parts/(pid)': 'send a part of a file',
    'POST /api/uploads/(uid)/finished':
      'check that all parts arrived, and parse the files: uploaded',
    'GET /api/configuration/parsers': 'parsers and their parameters',
  },
  jobs: {
    'GET /api/jobs': 'your jobs: all work that takes longer than a request',
    'GET /api/jobs/(id)/events': 'follow a job as server-sent events',
    'DELETE /api/jobs/(id)': 'cancel a job',
  },
  reference: {
    '/api/docs': 'every operation',
    '/api/openapi.json': 'the same for programs (OpenAPI)',
  },
  operation: {
    '/healthz': 'whether this process answers',
    '/readyz': 'whether it can serve, and which dependency is unavailable',
    '/metrics': 'metrics for Prometheus, for server administrators',
    '/admin/queues': 'the queues, for server administrators',
  },
};

const HEADINGS: Partial<Record<keyof typeof SERVICE_INDEX, string>> = {
  begin: 'To begin',
  remote: 'Remote hosts',
  projects: 'Projects and models',
  uploads: 'Uploads',
  jobs: 'Jobs',
  reference: 'Reference',
  operation: 'Operation',
};

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}td{padding:.1rem 1.5rem .1rem 0;vertical-align:top}h2{font-size:1.1rem;margin:1.5rem 0 .3rem}code{font-size:.9em;overflow-wrap:anywhere}@media(max-width:40rem){td{display:block;padding:0}tr{display:block;padding:.3rem 0}}';

/** Renders the same as HTML: a path leads to the operation's entry in the documentation, or to what it names. */
export function renderServiceIndex(operations: RoutedOperation[]): string {
  const ids = new Map(
    operations.map(({ path, method, operation }) => [keyOf(`${method} ${path}`), operation.id]),
  );
  const linkTo = (route: string) =>
    route.startsWith('/') ? route : `/api/docs#${ids.get(keyOf(route)) ?? ''}`;
  const parts = Object.entries(HEADINGS).map(([key, heading]) => {
    const rows = Object.entries(SERVICE_INDEX[key as keyof typeof SERVICE_INDEX]).map(
      ([route, meaning]) =>
        `<tr><td><a href="${linkTo(route)}"><code>${route}</code></a></td><td>${meaning}</td></tr>`,
    );
    return `<h2>${heading}</h2><table>${rows.join('')}</table>`;
  });
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${SERVICE_INDEX.name}</title><style>${STYLE}</style></head><body><h1>${SERVICE_INDEX.name}</h1><p>${SERVICE_INDEX.is}</p>${parts.join('')}</body></html>`;
}

/** The same for `POST /api/remotes/(sid)/browse/(path)` and its route, whatever their parameters are called. */
const keyOf = (route: string) =>
  route
    .toLowerCase()
    .replace(/[{}]/g, '')
    .replace(/[:*]\w+|\(\w+\)/g, '()');
