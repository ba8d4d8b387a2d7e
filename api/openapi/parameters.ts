import { MAX_FILES, MAX_PARTS } from '../../shared/uploads/uploads.ts';

/** Identifiers in paths, by their name in the interface. */
const PARAMETERS: Record<string, string> = {
  sid: 'Remote session.',
  vsid: 'Video creation session.',
  pid: 'Project.',
  mid: 'Model.',
  aid: 'Artifact: the name of a parameter, table or file.',
  bid: 'Bookmark.',
  uid: 'Upload session.',
  fid: 'File of an upload, from 0.',
  part: 'Part of a file, from 0.',
  key: 'Key in a project cache; may contain slashes.',
  id: 'Job, token or webhook.',
  name: 'Host.',
  username: 'User.',
  path: 'Absolute path on the host; its first slash may be omitted.',
  event: 'Description of the user interaction: any path-like text, and a query.',
};

const TEXT = { type: 'string', minLength: 1 };
const ONE_LINE = { ...TEXT, pattern: '^[^\\p{Cc}\\p{Cs}]*$' };
const place = (count: number) => ({ type: 'integer', minimum: 0, maximum: count - 1 });
const SCHEMAS: Record<string, { [member: string]: string | number }> = {
  aid: { ...ONE_LINE, maxLength: 255 },
  event: { type: 'string' },
  fid: place(MAX_FILES),
  key: { ...ONE_LINE, maxLength: 900 },
  part: place(MAX_PARTS),
};

export function describeParameter(name: string) {
  const description = PARAMETERS[name];
  if (!description) throw new Error(`describe the path parameter ${name} in parameters.ts`);
  return { name, in: 'path', required: true, description, schema: SCHEMAS[name] ?? TEXT };
}
