/** Hints of the service that name requests and members of JSON, and what they are for who types commands. */
const HINTS: [said: RegExp, instead: string][] = [
  [/^GET \/api\/users lists/, 'See: windlass user list.'],
  [/^GET \/api\/hosts lists/, 'See: windlass host list.'],
  [/^GET \/api\/workers lists/, 'See: windlass worker list.'],
  [/^GET \/api\/jobs lists/, 'See: windlass jobs.'],
  [/^GET \/api\/projects lists/, 'See: windlass project list.'],
  [/^GET \/api\/projects\/\(pid\)\/models lists/, 'See: windlass model list PROJECT.'],
  [/^GET \/api\/models\/\(mid\) lists/, 'See: windlass model show MODEL.'],
  [
    /^(GET \/api\/uploads lists|Begin another upload with POST )/,
    'Begin another: windlass upload FILE --model MODEL.',
  ],
  [/^End some with DELETE \/api\/remotes/, 'End some: windlass close ID.'],
  [/^GET on the path above it lists/, 'See: windlass token list.'],
  [/^Delete one: GET \/api\/users\/-\/tokens /, 'Delete one: windlass token delete ID.'],
  [/^GET …\/metadata lists the columns/, 'See its columns: windlass rows MODEL TABLE --limit 1.'],
  [/^GET \/api\/configuration\/parsers lists/, 'Give another --parser.'],
  [/ parser="csv"/, 'To have a table of it, upload it again with --parser csv.'],
  [/^Choose .* names? in "aids"/, 'Choose other names with --aid, or rename what is in the file.'],
  [/"encoding"/, 'Name its encoding, such as --set encoding=utf-16.'],
  [/"units"/, 'Leave out --set units, if the file has no row of units.'],
  [
    /"nulls"/,
    `Correct the values, or name those that stand for a missing one: --set 'nulls=["n/a"]'.`,
  ],
  [/, or another content-type\.$/, 'Give another --codec: windlass video --help lists them.'],
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
