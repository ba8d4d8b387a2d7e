import { makeHdf5Artifacts } from '../hdf5/make-artifacts.ts';
import type { Reader } from '../table/protocol.ts';

const hdf5: Reader<'hdf5'> = makeHdf5Artifacts;

export default hdf5;
