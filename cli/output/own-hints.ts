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

/** What a hint says beside other remedies, which people still have to read. */
const PARTS: [said: RegExp, instead: string][] = [
  [/^End some with DELETE \/api\/remotes\/\(sid\)/, 'End some: windlass close ID'],
  [/ parser="csv"/, ' --parser csv'],
  [/^(Choose .* names?) in "aids"/, '$1 with --aid'],
  [/ with "encoding"/, ' with --set encoding=NAME'],
  [/^Name "encoding": "utf-16"/, 'Give --set encoding=utf-16'],
  [/^Leave "units" out/, 'Leave --set units out'],
  [/ with "nulls"/, ` with --set 'nulls=["n/a"]'`],
  [/ type in "types"/, ` type: --set 'types={"a":"text"}'`],
  [
    /^Use (.*), or another content-type/,
    'Use --codec $1, or another ending of the file: .mp4 or .webm',
  ],
];

/** A hint of the service, in words of this program where it has some. */
export function ownHint(hint: string | undefined): string | undefined {
  if (hint === undefined) return undefined;
  const whole = HINTS.find(([said]) => said.test(hint))?.[1];
  return whole ?? PARTS.reduce((text, [said, instead]) => text.replace(said, instead), hint);
}
