import type { Stack } from '../servers/stack.ts';
import type { DemoContext } from './context.ts';
import { showBullBoard } from './steps/bull-board.ts';
import { recordEvent, storeBookmark, storeParameter } from './steps/client-state.ts';
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
import { drawFrames, makeVideo } from './steps/videos.ts';
import { generateWeatherData } from './weather-data.ts';

/** What the reader can try at the end. */
export interface Shown {
  session: string;
  /** The path of the table. */
  table: string;
}

const CSV_BYTES = 20_000_000;

/** Runs all steps on a running service. Throws the error of the first step that fails. */
export async function runSteps(demo: DemoContext, service: Stack): Promise<Shown> {
  const { out } = demo;
  const session = await out.step('Open a session with an agent', () => openSession(demo));
  await out.step('Run a command and print its lines as they arrive', () =>
    runCommand(demo, session),
  );
  await out.step(
    'Run a long command and kill its worker with -9: the command runs once, to its end',
    () => surviveKill(demo, session),
  );

  const frames = await out.step('Draw 60 frames on the host', () => drawFrames(demo));
  const video = await out.step(
    'Make an MP4, fetch it completely and by range, count its frames',
    () => makeVideo(demo, { session, frames, type: 'video/mp4' }),
  );
  await out.step('Make a WebM and kill its worker with -9', () =>
    makeVideo(demo, { session, frames, type: 'video/webm', kill: true }),
  );

  const { pid, mid } = await out.step('Create a project and a model in it', () =>
    makeProject(demo),
  );
  await out.step('Store the MP4 in the cache of the project and fetch it from there', () =>
    cacheVideo(demo, video, pid),
  );

  const measurements = generateWeatherData(CSV_BYTES);
  const upload = await out.step('Start the upload of a CSV of 20 MB', () =>
    openUpload(demo, { mid, file: measurements.csv, aid: 'summer' }),
  );
  await out.step('Send its parts out of order, four at a time, until a connection is cut', () =>
    sendUntilCut(demo, upload),
  );
  await out.step('Finish the upload too early: nothing is parsed', () =>
    finishTooEarly(demo, upload),
  );
  await out.step('Resume: list the stored parts, send the others', () =>
    resumeUpload(demo, upload),
  );
  await out.step('Parse it: one worker is killed with -9, the next one does the rest', async () =>
    watchParse(demo, await finishUpload(demo, upload)),
  );

  const table = `/api/models/${mid}/tables/summer`;
  await out.step('Read the table', () => showTable(demo, table, measurements));
  await out.step('Filter and sort it', () => showView(demo, table, measurements));
  await out.step('Make a histogram of the temperatures: days and nights', () =>
    showHistogram(demo, table, measurements),
  );

  await out.step('Store a parameter and read the same bytes', () => storeParameter(demo, mid));
  await out.step('Store a bookmark of what a user sees', () => storeBookmark(demo, pid));
  await out.step('Send an event, which becomes a line of the log', () =>
    recordEvent(demo, service.logged),
  );
  await out.step('Open the queues in Bull Board, as an administrator', () =>
    showBullBoard(demo, service),
  );
  return { session, table };
}
