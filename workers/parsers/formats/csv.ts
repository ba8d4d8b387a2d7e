import { makeTable } from '../csv/make-table.ts';
import type { Reader } from '../table/protocol.ts';

const csv: Reader<'csv'> = async (request, onProgress) => {
  const table = await makeTable(request, onProgress);
  return [{ name: '', kind: 'table', path: request.output, ...table }];
};

export default csv;
