import type { RequestHandler } from 'express';
import { INPUT_BYTES } from '../../shared/jobs/payloads/launch.ts';
import type { ApiContext } from '../context.ts';
import { readJson } from './read-json.ts';

/** What takes a command's standard input: POST /remotes/launch and /remotes/(sid)/batch. */
const COMMANDS = /^\/remotes\/(launch|[^/]+\/batch)\/?$/;
/** A character below U+0020 is one byte, and six in JSON (RFC 8259, 7). */
const ESCAPED = 6;

/** Parses JSON bodies within LIMIT_BODY_BYTES, and a command's standard input beside them. */
export function readBodies({
  config,
  requestMemory,
}: Pick<ApiContext, 'config' | 'requestMemory'>): RequestHandler {
  const read = readJson(config, requestMemory);
  const most = config.LIMIT_BODY_BYTES + ESCAPED * INPUT_BYTES;
  const readCommand = readJson({ ...config, LIMIT_BODY_BYTES: most }, requestMemory);
  return (req, res, next) => (COMMANDS.test(req.path) ? readCommand : read)(req, res, next);
}
