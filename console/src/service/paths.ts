export const join = (folder: string, name: string) =>
  folder === '/' ? `/${name}` : `${folder}/${name}`;

/** The folder that holds it; that of / is / itself. */
export const parentOf = (path: string) => path.replace(/\/[^/]*$/, '') || '/';

export const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);

/** As a folder is named here: from / on, and with no slash at its end. */
export const cleanFolder = (path: string) => `/${path.split('/').filter(Boolean).join('/')}`;

/** In small letters, without the dot; empty where there is none. */
export const extensionOf = (name: string) => /\.([^./]+)$/.exec(name.toLowerCase())?.[1] ?? '';
