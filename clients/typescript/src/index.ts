export { type Api, unwrap } from './api.ts';
export { type ErrorCode, type Problem, WindlassError, type WrongField } from './error.ts';
export { escapePath } from './escape-path.ts';
export type { FollowOptions, JobEvent, JobState, Offsets } from './follow.ts';
export type {
  DirectoryListing,
  ReadOptions,
  WriteOptions,
  WrittenFile,
} from './host-files.ts';
export type { ConnectionOptions } from './http.ts';
export type { Job, WaitOptions } from './jobs.ts';
export type { Bytes, Chunk, Line, OutputStream } from './lines.ts';
export type { JobFilter, JobsOptions, ListedJob } from './list-jobs.ts';
export type { Challenge, Credentials, LoginOptions } from './login.ts';
export type { ParserParameters } from './parser-parameters.ts';
export type { Row, RowsOptions, RowsPage, Value } from './rows.ts';
export type { Result, Run } from './run.ts';
export type { components, operations, paths } from './schema.ts';
export type { BatchOptions, RunOptions, Session, SessionRecord } from './session.ts';
export type { Files, NewUpload, ResumedUpload, Source, UploadOptions } from './upload.ts';
export type { Video, VideoOptions } from './video.ts';
export { type OpenOptions, Windlass } from './windlass.ts';
