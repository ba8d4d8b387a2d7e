import { z } from 'zod';
import type { HostRow } from '../../shared/database/schema.ts';
import { username } from '../identity/username.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { pins, toHostKeys } from './host-pins.ts';
import { hostEndpoint } from './scan-host.ts';

/** The list as it is stored: null for everyone. */
function toList(users: '*' | string[]): string[] | null {
  return users === '*' ? null : [...new Set(users)];
}
const name = z.string().regex(/^[\w][\w.-]{0,252}$/, 'must be 1 to 253 letters, digits, . _ -');
const fields = {
  ...hostEndpoint,
  keys: pins,
  trust: z.literal('now'),
  agent: z.boolean(),
  users: z.union([z.literal('*'), z.array(username).max(1_000)]).transform(toList),
  /** The host that it is reached through; null: workers connect to it themselves. */
  jump: name.nullable(),
};
const oneOf = (given: { keys?: unknown; trust?: unknown }) =>
  (given.keys === undefined) !== (given.trust === undefined);
/** A scan logs in nowhere: it cannot go through another host. */
export const NO_LOGIN =
  'give keys: what a host shows behind a jump host is not seen without a login there';
export const newHost = z
  .strictObject({
    name,
    ...fields,
    address: fields.address.optional(),
    port: fields.port.default(22),
    keys: fields.keys.optional(),
    trust: fields.trust.optional(),
    agent: fields.agent.default(true),
    private: fields.private.default(false),
    users: fields.users.default(null),
    jump: fields.jump.default(null),
  })
  .refine(oneOf, { path: ['keys'], message: 'give either keys or "trust": "now"' })
  .refine(given => !given.jump || given.trust === undefined, {
    path: ['trust'],
    message: NO_LOGIN,
  })
  .meta({ id: 'NewHost' });
export const hostChanges = z
  .strictObject(fields)
  .partial()
  .refine(given => given.keys === undefined || given.trust === undefined, {
    path: ['keys'],
    message: 'give either keys or "trust": "now"',
  })
  .meta({ id: 'HostChanges' });

const hostName = z
  .object({
    name: z.string(),
    agent: z.boolean(),
    /** The host that it is reached through, where there is one: a login goes there first. */
    jump: z.string().optional(),
  })
  .meta({ id: 'HostName' });
export const fullHost = hostName
  .extend({
    address: z.string(),
    port: z.number().int(),
    keys: z.array(z.string()),
    fingerprints: z.array(z.string()),
    private: z.boolean(),
    users: z.union([z.literal('*'), z.array(z.string())]),
    jump: z.string().nullable(),
    created: z.date(),
  })
  .meta({ id: 'Host' });
/** Server administrators see the full record, others the short one. */
export const hostRecord = z.union([fullHost, hostName]);
export type HostRecord = z.output<typeof hostRecord>;

export const newEndpoint = z
  .strictObject({
    ...hostEndpoint,
    port: hostEndpoint.port.default(22),
    private: hostEndpoint.private.default(false),
    name: jobName,
  })
  .meta({ id: 'HostEndpoint' });
export const shownKeys = fullHost.pick({ keys: true, fingerprints: true }).meta({ id: 'HostKeys' });
export const toFullHost = (row: HostRow): z.output<typeof fullHost> => ({
  name: row.name,
  address: row.address,
  port: row.port,
  ...toHostKeys(row.keys),
  agent: row.agent,
  private: row.private,
  users: row.users ?? '*',
  jump: row.jump,
  created: row.created,
});
export const toShortHost = ({ name, agent, jump }: HostRow) => ({
  name,
  agent,
  ...(jump !== null && { jump }),
});
