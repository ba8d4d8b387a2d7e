/** The clients of tus that a page loads: see bundleForPage(). */
export { default as Uppy } from '@uppy/core';
export { default as Tus } from '@uppy/tus';
export * as tus from 'tus-js-client';
