import type { Json } from '../json.ts';

export const TABLE_EXAMPLES: Record<string, Json> = {
  Table: {
    rows: 86_400,
    columns: [
      { name: 'second', type: 'integer', min: 1, max: 86_400, nulls: 0 },
      { name: 'sky', type: 'text', min: 'clear', max: 'rain', nulls: 0 },
      { name: 'temperature', type: 'number', min: 4.1, max: 19.9, nulls: 3, unit: '°C' },
    ],
  },
  TableRows: {
    offset: 0,
    total: 86_400,
    columns: ['second', 'sky', 'temperature'],
    rows: [
      [1, 'clear', 12],
      [2, 'clear', null],
    ],
  },
  TableGroups: {
    columns: ['sky', 'count', 'mean:temperature'],
    rows: [
      ['clear', 74_057, 12.2],
      ['rain', 12_343, 11.7],
    ],
  },
  Histogram: {
    column: 'temperature',
    nulls: 3,
    others: 0,
    bins: [
      { from: 4.1, to: 12, count: 43_200 },
      { from: 12, to: 19.9, count: 43_197 },
    ],
  },
  TableSeries: {
    x: 'second',
    y: 'temperature',
    buckets: {
      from: [1, 43_201],
      to: [43_201, 86_401],
      min: [4.1, 12],
      max: [12, 19.9],
      count: [43_200, 43_197],
    },
  },
  ArrayMetadata: { shape: [365, 180, 360], type: 'number', min: -61.2, max: 48.9, unit: '°C' },
  ArraySlice: { shape: [3], values: [11.8, 12, 'NaN'] },
  ViewProgress: { state: 'running', progress: 0.3 },
};
