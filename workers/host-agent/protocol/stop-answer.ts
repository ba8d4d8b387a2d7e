/**
 * - `killed` (now or earlier), `group_killed` (the host has no /proc), `survivors`, `ended` (by itself)
 * - `stopped` before it started, `never_started` (nor ever will)
 * - `wrong_node`: only an agent on `node`, which shares this home, can stop it
 * - `absent`: it has not started, and may yet, as the host could write no fence
 */
const STOP_RESULTS = [
  'killed',
  'group_killed',
  'survivors',
  'ended',
  'stopped',
  'never_started',
  'wrong_node',
  'absent',
] as const;

export interface StopAnswer {
  result: (typeof STOP_RESULTS)[number];
  node?: string;
}

export function toStopAnswer(answer: string): StopAnswer {
  const [said = '', ...node] = answer.split(' ');
  const result = STOP_RESULTS.find(known => known === said);
  if (!result) throw new Error(`The agent answered a stop with ${JSON.stringify(said)}.`);
  return node.length > 0 ? { result, node: node.join(' ') } : { result };
}
