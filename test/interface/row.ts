import type { Tools } from './tools.ts';

/** What a case needs that not every machine has the programs for. */
type Need = 'host';

/** One promise of the interface. */
export interface Row {
  /** What it belongs to, then the promise in few words. */
  name: string;
  /** The operations that it is about, such as `GET /remotes/{sid}`; it must ask each of them. */
  of: string[];
  needs?: Need;
  run(tools: Tools): Promise<void>;
}

/** `of`: operations, separated by commas. */
export function row(name: string, of: string, run: Row['run'], needs?: Need): Row {
  return { name, of: of.split(', '), needs, run };
}
