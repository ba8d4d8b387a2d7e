import { makeHdf5Artifacts } from '../hdf5/make-artifacts.ts';
import type { Reader } from '../table/protocol.ts';

/** A file of netCDF-4 is one of HDF5. */
const netcdf: Reader<'netcdf'> = makeHdf5Artifacts;

export default netcdf;
