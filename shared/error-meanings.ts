import type { ErrorCode } from './errors.ts';

/** What a code of errors.ts means to a client, and what to do about it. A code without an entry does not compile. */
export const ERROR_MEANINGS: Record<ErrorCode, { meaning: string; remedy: string }> = {
  bad_request: {
    meaning: 'This is no HTTP request that can be read, or it broke off.',
    remedy: "Correct the request line, the path's escapes or the body.",
  },
  invalid_input: {
    meaning: 'The body, query or a header does not validate; `fields` names each wrong one.',
    remedy: 'Correct the fields named.',
  },
  agent_required: {
    meaning: 'Videos need a session that runs an agent.',
    remedy: 'Open a session with `"agent": true`.',
  },
  missing_agent: {
    meaning: 'An agent was asked for on a host that is not set up for one.',
    remedy: "Leave `agent` out, or have the host's entry changed.",
  },
  agent_problem: {
    meaning: 'The agent could not start the command; nothing was run.',
    remedy: "Send the request again; see the detail for the host's reason.",
  },
  missing_content_type: {
    meaning: 'A video was asked for without `content-type`.',
    remedy: 'Give `video/mp4` or `video/webm`.',
  },
  missing_images: {
    meaning: 'A video was asked for without frames.',
    remedy: 'Give `images`, absolute paths on the host.',
  },
  unsupported_video_type: {
    meaning: 'The `content-type` is not one that can be made.',
    remedy: 'Give `video/mp4` or `video/webm`.',
  },
  output_limit: {
    meaning: 'The command wrote more than `LIMIT_OUTPUT_BYTES` and was stopped.',
    remedy: 'Have it write to a file on the host.',
  },
  time_limit: {
    meaning: 'The command ran longer than `LIMIT_COMMAND_SECONDS` and was stopped.',
    remedy: 'Split the work.',
  },
  remote_disk_full: {
    meaning: "The account's disk on the host is full; what was printed before can be read.",
    remedy: 'Free some space in its home.',
  },
  bad_frames: {
    meaning:
      'Frames are missing, unreadable or of different sizes; `frames` lists the first twenty.',
    remedy: 'Correct the frames listed.',
  },
  parse_failed: {
    meaning: 'A file of the upload cannot be parsed; `errors` names file, row, column and reason.',
    remedy: 'Correct the file and upload it anew.',
  },
  upload_incomplete: {
    meaning: 'Parts named in `uploaded` were not received; `missing` lists them as [file, part].',
    remedy: 'Send the missing parts, then `finished` again.',
  },
  client_confused: {
    meaning:
      'More parts were received than `uploaded` states; `excess` lists them as [file, part].',
    remedy: 'Send `finished` again with the numbers of parts that were sent.',
  },
  digest_mismatch: {
    meaning: 'The bytes that arrived are not those that `Content-Digest` names; nothing was kept.',
    remedy: 'Send the part again.',
  },
  unknown_cache_type: {
    meaning: '`cache` has a value other than `project`.',
    remedy: 'Give `cache=project`, or leave it out.',
  },
  missing_project: {
    meaning: '`cache=project` was given without `project`.',
    remedy: 'Name the project by its id.',
  },
  missing_cache_key: {
    meaning: '`cache=project` was given without `key`.',
    remedy: 'Give the key that the video is to be found by.',
  },
  locked: {
    meaning: 'The server is still copying a part of this upload.',
    remedy: 'Wait for the copy, which is a job, then send `finished` again.',
  },
  video_failed: {
    meaning: 'The encoder failed; `returncode` and `stderr`, where given, are for debugging.',
    remedy: 'See the detail; another `encode` may help.',
  },
  wrong_node: {
    meaning: "The run lives on another node behind the host's name, which was not reached again.",
    remedy: 'Add that node as a host of its own.',
  },
  unauthorized: {
    meaning: 'No credentials came, or they are wrong.',
    remedy:
      'Send a user name and password (HTTP Basic), a token (Bearer) or the cookie of a login.',
  },
  forbidden: {
    meaning:
      'These credentials may not do this: it takes another role, a token that may write, or a page of this origin.',
    remedy: 'See the hint; ask an administrator for the role.',
  },
  host_not_allowed: {
    meaning: 'The host is not on the list, its port differs, or its address is an inner one.',
    remedy: 'Have an administrator add or change the host.',
  },
  remote_authentication_failed: {
    meaning:
      'The host refused the user name, password or key, and is not asked again for five minutes; or the key that opens them is gone.',
    remedy: 'Open a session with credentials that it accepts.',
  },
  not_found: {
    meaning: "There is no such thing, or it is another user's.",
    remedy: 'List what there is.',
  },
  session_not_found: {
    meaning: 'The remote session was deleted, has timed out, or never was.',
    remedy: 'Open a new one.',
  },
  method_not_allowed: {
    meaning: 'The path takes other methods; `Allow` names them.',
    remedy: 'Use one of those.',
  },
  request_timeout: {
    meaning: 'The request came too slowly.',
    remedy: 'Send it again.',
  },
  conflict: {
    meaning: 'The thing is not in a state that allows this; the detail says which it is in.',
    remedy: 'Read it again, then decide.',
  },
  cancelled: {
    meaning: 'The job was cancelled, by DELETE or with its session.',
    remedy: 'Start another.',
  },
  host_key_changed: {
    meaning: 'The host shows a key that is not pinned; nothing was sent to it.',
    remedy: 'Find out why; if it is right, an administrator pins the new key.',
  },
  idempotency_conflict: {
    meaning: 'The `Idempotency-Key` was used with another body within 24 hours.',
    remedy: 'Use a new key for a new request.',
  },
  video_not_ready: {
    meaning: 'The video is still being made.',
    remedy: 'Wait for `ready` in its status; `Retry-After` says how long.',
  },
  precondition_failed: {
    meaning: 'The record has changed since it was read (`If-Match`).',
    remedy: 'Read it again and repeat the change.',
  },
  payload_too_large: {
    meaning:
      'The body is larger than it may be: JSON 1 MiB, a parameter, bookmark or event 16 MiB, a part of an upload 5 GiB.',
    remedy: 'Send a smaller one, a file in more parts.',
  },
  address_too_long: {
    meaning: 'Path and query are longer than 8,192 characters.',
    remedy: 'Send shorter ones.',
  },
  unsupported_media_type: {
    meaning: 'The body is not JSON in UTF-8.',
    remedy: 'Send `Content-Type: application/json`.',
  },
  range_not_satisfiable: {
    meaning: 'The range begins past the end; `Content-Range` tells the size.',
    remedy: 'Ask for bytes that exist.',
  },
  too_many_requests: {
    meaning: 'More requests a second, open sessions, uploads or jobs than one user may have.',
    remedy: 'Wait as long as `Retry-After` says, or end some.',
  },
  headers_too_large: {
    meaning: 'The header fields are longer than 32 KiB.',
    remedy: 'Send fewer or shorter ones.',
  },
  internal: {
    meaning: 'Something that nobody foresaw; the log has it under the `requestId`.',
    remedy: 'Tell an administrator the `requestId`.',
  },
  remote_connection_failed: {
    meaning: 'The host could not be reached, or the link broke before anything was run.',
    remedy: 'Check the host, then try again.',
  },
  startup_files_print: {
    meaning: "The account's start-up files write to standard output without a terminal.",
    remedy: 'Have them print only in interactive shells.',
  },
  agent_startup_failed: {
    meaning: 'The agent could not be put on the host or does not run there.',
    remedy: 'See the detail, or open the session with `"agent": false`.',
  },
  outcome_unknown: {
    meaning: 'The command was started, and how it ended cannot be known; it is not run again.',
    remedy: 'Look on the host, then decide.',
  },
  worker_lost: {
    meaning: 'Twenty workers in a row died of this job without any progress.',
    remedy: "See the workers' log; the work may need more memory than they have.",
  },
  unavailable: {
    meaning: 'The database, the store or every worker that the request needs is down.',
    remedy: 'Try again after `Retry-After`.',
  },
  insufficient_storage: {
    meaning:
      'The disk of the database or of the store is full, or the project keeps as much as it may (`LIMIT_PROJECT_BYTES`).',
    remedy: 'Free some space; in a project delete what is no longer needed.',
  },
};
