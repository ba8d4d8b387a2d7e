import { useMutation, useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { queries, windlass } from './client.ts';
import { useTransfers } from './page-transfers.ts';
import { readAll } from './pages.ts';
import {
  abandonUpload,
  getUpload,
  type Upload,
  type UploadTransfer,
  uploadTransfers,
} from './upload-transfers.ts';

export type Parser = components['schemas']['Parser'];
export type { Upload, UploadTransfer };

/** The parsers of uploads with their parameters, which change with the service alone. */
export const useParsers = () =>
  useQuery({
    queryKey: ['parsers'],
    queryFn: async ({ signal }) =>
      (await unwrap(windlass.api.GET('/api/configuration/parsers', { signal }))).items,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The uploads of this page into a model. */
export const useUploadTransfers = (mid: string): UploadTransfer[] =>
  useTransfers(uploadTransfers).filter(each => each.mid === mid);

/** The user's uploads into a model that were begun, here or elsewhere, and not ended. */
export const useOpenUploads = (mid: string) =>
  useQuery({
    queryKey: ['uploads', mid],
    queryFn: async ({ signal }) => {
      const all = await readAll(query =>
        unwrap(windlass.api.GET('/api/uploads', { params: { query }, signal })),
      );
      const found: Upload[] = [];
      for (const { id, state, mid: into } of all)
        if (state === 'open' && into === mid) found.push(await getUpload(id));
      return found;
    },
    staleTime: 5_000,
  });

/** What others have sent of them meanwhile is shown. */
export const openUploadsChanged = (mid: string) =>
  queries.invalidateQueries({ queryKey: ['uploads', mid] });

export const useAbandonUpload = (mid: string) =>
  useMutation({
    meta: { done: 'The upload is given up.' },
    mutationFn: abandonUpload,
    onSettled: () => openUploadsChanged(mid),
  });
