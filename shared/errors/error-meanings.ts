import type { ErrorCode } from './errors.ts';

/** What each code of errors.ts means to a client, and what to do about it; docs/errors.md is made from this. */
export const ERROR_MEANINGS: Record<ErrorCode, { meaning: string; remedy: string }> = {
  bad_request: {
    meaning: 'The HTTP request cannot be read, or it ended early.',
    remedy: "Correct the request line, the path's escapes or the body.",
  },
  invalid_input: {
    meaning: 'The body, the query or a header is invalid; `fields` names each wrong field.',
    remedy: 'Correct the named fields.',
  },
  agent_required: {
    meaning: 'Videos need a session with an agent.',
    remedy: 'Open a session with `"agent": true`.',
  },
  shell_unusable: {
    meaning:
      'The account cannot run commands: another command is forced on it, its shell is restricted, or its start-up files do not end.',
    remedy:
      'See in the detail what the host said; have the account given a shell that runs commands.',
  },
  host_unsupported: {
    meaning: 'The host lacks something that the agent needs; the detail names it.',
    remedy: 'Have that added on the host, or open the session with `"agent": false`.',
  },
  missing_agent: {
    meaning: 'The request asks for an agent on a host that is not set up for one.',
    remedy: "Omit `agent`, or ask an administrator to change the host's entry.",
  },
  agent_problem: {
    meaning: 'The agent could not start the command; nothing ran.',
    remedy: "Send the request again. The detail has the host's reason.",
  },
  missing_content_type: {
    meaning: 'The request for a video has no `content-type`.',
    remedy: 'Give `video/mp4` or `video/webm`.',
  },
  missing_images: {
    meaning: 'The request for a video names no frames.',
    remedy: 'Give `images`: absolute paths on the host, or a `pattern`.',
  },
  unsupported_video_type: {
    meaning: 'Videos of this `content-type` are not supported.',
    remedy: 'Give `video/mp4` or `video/webm`.',
  },
  output_limit: {
    meaning:
      'The command wrote more than `LIMIT_OUTPUT_BYTES` and was stopped, or the listing of a directory is larger.',
    remedy: 'Let it write to a file on the host.',
  },
  time_limit: {
    meaning:
      'The command ran longer than its `timeout`, or than `LIMIT_COMMAND_SECONDS`, and was stopped; or the host did not answer about a file, as where its disk hangs.',
    remedy: 'Split the work; have the disk looked at.',
  },
  cwd_not_found: {
    meaning: 'The account cannot enter the folder that `cwd` names; nothing ran.',
    remedy: 'Give a folder that exists on the host.',
  },
  remote_disk_full: {
    meaning:
      "The account's disk or quota on the host is full; of a command the output up to then can be read, of a file nothing stays.",
    remedy: "Free space in the account's home folder, or where the file was to be.",
  },
  bad_frames: {
    meaning:
      'Frames are missing, broken or of different sizes; `frames` lists the first hundred, `count` is of all.',
    remedy: 'Correct the listed frames, or give `"on-bad-frame": "skip"`.',
  },
  parse_failed: {
    meaning: 'A file of the upload cannot be parsed; `errors` names file, row, column and reason.',
    remedy: 'Correct the file and upload it again.',
  },
  upload_incomplete: {
    meaning: 'Parts stated in `uploaded` were not received; `missing` lists them as [file, part].',
    remedy: 'Send the missing parts, then send `finished` again.',
  },
  client_confused: {
    meaning:
      'More parts were received than `uploaded` states; `excess` lists them as [file, part].',
    remedy: 'Send `finished` again with the right numbers of parts.',
  },
  digest_mismatch: {
    meaning: 'The received bytes do not match `Content-Digest`; nothing was stored.',
    remedy: 'Send the part again.',
  },
  checksum_mismatch: {
    meaning: 'The received bytes do not match `Upload-Checksum` of tus; nothing was stored.',
    remedy: 'Send them again.',
  },
  unknown_cache_type: {
    meaning: '`cache` has a value other than `project`.',
    remedy: 'Use `cache=project`, or omit it.',
  },
  missing_project: {
    meaning: '`cache=project` was given without `project`.',
    remedy: "Give the project's id.",
  },
  missing_cache_key: {
    meaning: '`cache=project` was given without `key`.',
    remedy: 'Give a key for the video in the cache.',
  },
  locked: {
    meaning:
      'The server is still copying a part of this upload; or, by tus, another request goes on with it, or you have too many open jobs for its parse.',
    remedy:
      'Wait for the job that copies, then send `finished` again; by tus, ask for the offset again.',
  },
  video_failed: {
    meaning: 'The encoder failed; `returncode` and `stderr`, where given, are for debugging.',
    remedy: 'See the detail; another value of `encode` may help.',
  },
  batch_unavailable: {
    meaning: 'The host has no batch system that is known here; nothing was submitted.',
    remedy: "Run a command instead, or have the account's start-up files put `sbatch` on PATH.",
  },
  batch_refused: {
    meaning: 'The batch system of the host did not take the job; nothing ran.',
    remedy: 'Correct what the detail names.',
  },
  batch_ended: {
    meaning:
      'The batch system ended the job, for its time limit, its memory or its node, or someone did there; or it was over before it had begun.',
    remedy: "Read the end of its output, and the state in the record's `batch`.",
  },
  wrong_node: {
    meaning:
      "The command runs on another node behind the host's name, which could not be reached again.",
    remedy: 'Add that node as a separate host.',
  },
  unauthorized: {
    meaning: 'The credentials are missing or wrong.',
    remedy:
      'Send a user name and password (HTTP Basic), a token (Bearer) or the cookie of a login.',
  },
  forbidden: {
    meaning:
      'These credentials do not permit the request: it needs a higher role, a token with write scope, or a page of this origin.',
    remedy: 'See the hint, or ask an administrator for the role.',
  },
  host_not_allowed: {
    meaning: 'The host is not on the list, its port differs, or its address is an internal one.',
    remedy: 'Ask an administrator to add or change the host.',
  },
  remote_authentication_failed: {
    meaning:
      'The host refused the user name, password or key, and is not tried again for five minutes; or the key that decrypts the stored credentials was removed.',
    remedy: 'Open a session with credentials that the host accepts.',
  },
  account_unusable: {
    meaning:
      "The host takes the login but not for work: the account or its password has expired, or it is locked. The detail has the host's words.",
    remedy: 'Change the password at a terminal, or ask the administrators of the host.',
  },
  not_found: {
    meaning: 'The resource does not exist, or belongs to another user.',
    remedy: 'List the existing ones.',
  },
  session_not_found: {
    meaning: 'The remote session was deleted, has timed out, or never existed.',
    remedy: 'Open a new session.',
  },
  method_not_allowed: {
    meaning: 'The path does not support this method; `Allow` lists those it supports.',
    remedy: 'Use one of them.',
  },
  request_timeout: {
    meaning: 'The request arrived too slowly.',
    remedy: 'Use a faster connection, or send a smaller body.',
  },
  conflict: {
    meaning: "The resource's state does not allow this; the detail names the state.",
    remedy: 'Read the resource again, then decide.',
  },
  cancelled: {
    meaning:
      'The job was cancelled, by DELETE or because its session ended or its user was removed.',
    remedy: 'Start another job.',
  },
  challenge_expired: {
    meaning: 'What the host asked for was answered before, or not in time.',
    remedy: 'Begin the login again.',
  },
  host_changed: {
    meaning:
      'The entry of the host, or of a jump host on the way, got another address, port, key or jump host, which ended its sessions; no credentials were sent there.',
    remedy: 'Open a new session, if the change is right.',
  },
  sftp_unavailable: {
    meaning:
      'The host offers no SFTP to this account, so that its files cannot be listed or read; or its SFTP lacks what a file is written by, or breaks the protocol.',
    remedy:
      "Have the `sftp` subsystem, or the extension that `detail` names, enabled in the host's `sshd_config`. Commands work without it.",
  },
  host_key_changed: {
    meaning:
      'The host presented a key that is not pinned, or a certificate that does not count; no credentials were sent.',
    remedy:
      'Find out why. If the new key is right, an administrator pins it. A certificate is to be renewed.',
  },
  idempotency_conflict: {
    meaning:
      'The `Idempotency-Key` was used within 24 hours for another request, or for a job whose record was removed since.',
    remedy: 'Use a new key for a new request.',
  },
  reconnect_required: {
    meaning:
      "The session's connection was lost. Its host needs a one-time code, and the user did not log in again in time.",
    remedy: 'Log in with `POST /remotes/(sid)/login`, then repeat the request.',
  },
  video_not_ready: {
    meaning: 'The video is still being made.',
    remedy: 'Poll its status until `ready` is true; `Retry-After` says when.',
  },
  precondition_failed: {
    meaning:
      'The record has changed since it was read (`If-Match`, `If-Unmodified-Since`), or there is one already (`If-None-Match`).',
    remedy: 'Read it again and repeat the change, or choose another name.',
  },
  payload_too_large: {
    meaning:
      'The body is larger than a setting allows: `LIMIT_PART_BYTES` for a part of an upload, `LIMIT_VALUE_BYTES` for a parameter, bookmark or event, `LIMIT_BODY_BYTES` for other JSON.',
    remedy: 'Send a smaller body, or a file in more parts.',
  },
  address_too_long: {
    meaning: 'Path and query are longer than 8,192 characters.',
    remedy: 'Shorten them.',
  },
  unsupported_media_type: {
    meaning: 'The body is not JSON in UTF-8.',
    remedy: 'Send `Content-Type: application/json`.',
  },
  range_not_satisfiable: {
    meaning: 'The range begins past the end; `Content-Range` has the size.',
    remedy: 'Request an existing range.',
  },
  too_many_requests: {
    meaning:
      'The user has reached a limit: requests per second, open sessions, uploads, jobs or streams, or logins that a host refuses.',
    remedy: 'Wait as long as `Retry-After` says, or end some of them.',
  },
  headers_too_large: {
    meaning: 'First line and header fields are longer than `LIMIT_HEADER_BYTES`.',
    remedy: 'Send fewer or shorter fields.',
  },
  internal: {
    meaning: 'An unexpected error; the log has it under the `requestId`.',
    remedy: 'Tell an administrator the `requestId`.',
  },
  remote_connection_failed: {
    meaning: 'The host could not be reached, or the connection broke before anything ran.',
    remedy: 'Check the host, then try again.',
  },
  startup_files_print: {
    meaning: "The account's start-up files write to standard output without a terminal.",
    remedy: 'Change them to print only in interactive shells.',
  },
  agent_startup_failed: {
    meaning: 'The agent could not be installed on the host, or does not run there.',
    remedy: 'See the detail, or open the session with `"agent": false`.',
  },
  outcome_unknown: {
    meaning: 'The command started, but how it ended is unknown; it does not run again.',
    remedy: 'Check on the host, then decide.',
  },
  worker_lost: {
    meaning: 'Twenty workers in a row died during this job without progress.',
    remedy: "See the workers' log; the work may need more memory than they have.",
  },
  unavailable: {
    meaning:
      'The database, the object store or all workers that the request needs are unavailable.',
    remedy: 'Try again after `Retry-After`.',
  },
  insufficient_storage: {
    meaning:
      'The disk of the database is full, that of the object store has only `LIMIT_FREE_BYTES` left, the project has reached `LIMIT_PROJECT_BYTES` or the user `LIMIT_USER_BYTES`, or a video is larger than `LIMIT_CACHE_BYTES`.',
    remedy: 'Free disk space, or delete data of the project or the user.',
  },
};
