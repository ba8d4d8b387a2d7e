/** Hints of the service that name requests and members of JSON, and what they are for who types commands. */
const HINTS: [said: RegExp, instead: string][] = [
  [/^GET \/api\/users lists/, 'See: windlass user list.'],
  [/^GET \/api\/hosts lists/, 'See: windlass host list.'],
  [/^GET \/api\/workers lists/, 'See: windlass worker list.'],
  [/^GET on the path above it lists/, 'See: windlass token list.'],
  [/^Delete one: GET \/api\/users\/-\/tokens /, 'Delete one: windlass token delete ID.'],
  [/^GET …\/metadata lists the columns/, 'See its columns: windlass rows MODEL TABLE --limit 1.'],
  [/^GET \/api\/configuration\/parsers lists/, 'Give another --parser.'],
  [/"private": true/, 'A server administrator can allow that: windlass host add --private.'],
  [
    /"on-bad-frame": "skip"/,
    'Every frame must be a readable image file of the same size. --skip-bad leaves out those that are not.',
  ],
  [/^Give "first" and "last", or a "step"/, 'Give --first and --last, or --step.'],
  [/^Leave it out, as by "first"/, 'Leave it out, as by --first or another pattern.'],
  [/^Give `cwd` /, 'Give --cwd a folder that exists there.'],
  [
    / a longer `timeout`/,
    'Start it again with a longer --timeout, or as several shorter commands.',
  ],
  [
    /^(Open a( new)? session with|Log in again with) POST /,
    'Log in again: windlass run HOST -- true.',
  ],
  [/^Look at the directory with POST /, 'Look at the folder: windlass run HOST -- ls.'],
];

/** A hint of the service, in words of this program where it has some. */
export const ownHint = (hint: string | undefined): string | undefined =>
  hint === undefined ? undefined : (HINTS.find(([said]) => said.test(hint))?.[1] ?? hint);
