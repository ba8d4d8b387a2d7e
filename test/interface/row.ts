import type { Tools } from './tools.ts';

/** What a case needs that not every service under test has. */
export type Need = 'host' | 'own' | 'administrator';

/** One row of a table of interface.md, or one sentence of decisions.md. */
export interface Row {
  /** Section and row, or page, paragraph and sentence. */
  name: string;
  /** The operations that it is about, such as `GET /remotes/{sid}`; it must ask each of them. */
  of: string[];
  needs: Need[];
  run(tools: Tools): Promise<void>;
}

/** `of`: operations, separated by commas. */
export function row(name: string, of: string, run: Row['run'], ...needs: Need[]): Row {
  return { name, of: of.split(', '), needs, run };
}
