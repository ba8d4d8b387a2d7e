import type { Stack } from '../servers/stack.ts';
import type { Demo } from './demo.ts';
import { makeMeasurements } from './measurements.ts';
import { showBoard } from './steps/board.ts';
import { openSession, runCommand, surviveKill } from './steps/commands.ts';
import { cacheVideo, makeProject } from './steps/projects.ts';
import { showHistogram, showTable, showView, watchParse } from './steps/tables.ts';
import {
  finishTooEarly,
  finishUpload,
  openUpload,
  resumeUpload,
  sendUntilCut,
} from './steps/uploads.ts';
import { keepBookmark, keepParameter, recordEvent } from './steps/values.ts';
import { drawFrames, makeVideo } from './steps/videos.ts';

/** What is left to be tried at the end. */
export interface Shown {
  session: string;
  /** The path of the table. */
  table: string;
}

const CSV_BYTES = 20_000_000;

/** Every step on a running service, in order; the first one that fails ends it. */
export async function runSteps(demo: Demo, service: Stack): Promise<Shown> {
  const { out } = demo;
  const session = await out.step('Open a session with an agent', () => openSession(demo));
  await out.step('Run a command and show its lines as they come', () => runCommand(demo, session));
  await out.step('A long command, whose worker is killed with -9: it runs once, to its end', () =>
    surviveKill(demo, session),
  );

  const frames = await out.step('Draw 60 frames on the host', () => drawFrames(demo));
  const video = await out.step('Make an MP4, fetch it whole and by range, count its frames', () =>
    makeVideo(demo, { session, frames, type: 'video/mp4' }),
  );
  await out.step('Make a WebM, whose worker is killed with -9', () =>
    makeVideo(demo, { session, frames, type: 'video/webm', kill: true }),
  );

  const { pid, mid } = await out.step('Make a project and a model in it', () => makeProject(demo));
  await out.step('Keep the MP4 in the cache of the project, and fetch it from there', () =>
    cacheVideo(demo, video, pid),
  );

  const measurements = makeMeasurements(CSV_BYTES);
  const upload = await out.step('Begin the upload of a CSV of 20 MB', () =>
    openUpload(demo, { mid, file: measurements.csv, aid: 'summer' }),
  );
  await out.step('Send its parts out of order, four at a time, until a connection is cut', () =>
    sendUntilCut(demo, upload),
  );
  await out.step('Say too early that all was sent: nothing is parsed', () =>
    finishTooEarly(demo, upload),
  );
  await out.step('Resume: ask which parts are there, send the others', () =>
    resumeUpload(demo, upload),
  );
  await out.step(
    'Have it parsed, by a worker that is killed with -9 and by the next one',
    async () => watchParse(demo, await finishUpload(demo, upload)),
  );

  const table = `/api/models/${mid}/tables/summer`;
  await out.step('Look at the table', () => showTable(demo, table, measurements));
  await out.step('Filter and sort it', () => showView(demo, table, measurements));
  await out.step('A histogram of the temperatures: days and nights', () =>
    showHistogram(demo, table, measurements),
  );

  await out.step('A parameter comes back byte for byte', () => keepParameter(demo, mid));
  await out.step('A bookmark of what a user sees', () => keepBookmark(demo, pid));
  await out.step('An event becomes a line of the log', () => recordEvent(demo, service.logged));
  await out.step('The queues in Bull Board, for administrators', () => showBoard(demo, service));
  return { session, table };
}
