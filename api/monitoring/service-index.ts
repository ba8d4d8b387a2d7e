/** GET /: what the service is and where to begin. */
export const SERVICE_INDEX = {
  name: 'Windlass',
  is: 'Hauls long work off the request path: commands on remote hosts over SSH, videos made from frames there, and big uploads that are parsed into models.',
  begin: {
    '/console/': 'the console: a page for people, where browsers are sent to',
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
    'PUT /api/uploads/(uid)/files/(fid)/parts/(part)': 'send a part of a file',
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
