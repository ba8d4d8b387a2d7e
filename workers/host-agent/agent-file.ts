import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The agent's file as it is installed on hosts. */
export interface AgentFile {
  /** In ~/.windlass; contains the first 16 hex digits of the content's SHA-256. */
  name: string;
  content: Buffer;
  /** POSIX `cksum` of the content, the only checksum that every host can compute. */
  checksum: number;
}

/** In the order in which they are concatenated; in `sh/` beside this module, in the sources and in the build. */
const PARTS = [
  'agent.sh',
  'kill-tree.sh',
  'spool.sh',
  'attempt.sh',
  'heartbeat.sh',
  'output.sh',
  'emitter.sh',
  'cleanup.sh',
  'serve.sh',
];

let loaded: AgentFile | undefined;

/** Reads the parts once in each process. */
export function loadAgentFile(): AgentFile {
  if (loaded) return loaded;
  const parts = PARTS.map(part => readFileSync(new URL(`sh/${part}`, import.meta.url)));
  const content = Buffer.concat(parts);
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 16);
  loaded = { name: `agent-${hash}.sh`, content, checksum: cksum(content) };
  return loaded;
}

/** POSIX.1-2017 `cksum`: CRC-32 with the most significant bit first, over content and length; zlib's is another CRC. */
export function cksum(content: Buffer): number {
  let crc = 0;
  const add = (byte: number) => {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  };
  for (const byte of content) add(byte);
  for (let length = content.length; length > 0; length = Math.floor(length / 256))
    add(length & 255);
  return ~crc >>> 0;
}
