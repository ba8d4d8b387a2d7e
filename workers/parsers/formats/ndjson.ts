import { makeRecordTable } from '../json/make-record-table.ts';
import { splitLines } from '../json/split-records.ts';
import type { Reader } from '../table/protocol.ts';

const ndjson: Reader<'ndjson'> = (request, onProgress) =>
  makeRecordTable(request, splitLines, onProgress);

export default ndjson;
