import { makeRecordTable } from '../json/make-record-table.ts';
import { splitElements } from '../json/split-records.ts';
import type { Reader } from '../table/protocol.ts';

const json: Reader<'json'> = (request, onProgress) =>
  makeRecordTable(request, splitElements, onProgress);

export default json;
