import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Certificate } from '../certificate/certificate.ts';
import { toBadge } from './badge.ts';
import { toIndex, toPage } from './page.ts';

/** A file to publish, by its path below the root. */
export interface PublishedFile {
  path: string;
  type: string;
  text: string;
}

/** The page, and for each provider its page, certificate and badge. */
export function filesOf(certificates: readonly Certificate[]): PublishedFile[] {
  return [
    { path: 'index.html', type: 'text/html; charset=utf-8', text: toIndex(certificates) },
    ...certificates.flatMap((certificate) => {
      const path = `providers/${certificate.provider}`;
      return [
        { path: `${path}.html`, type: 'text/html; charset=utf-8', text: toPage(certificate) },
        { path: `${path}.json`, type: 'application/json', text: `${JSON.stringify(certificate, null, 2)}\n` },
        { path: `${path}.svg`, type: 'image/svg+xml', text: toBadge(certificate) },
      ];
    }),
  ];
}

/** Writes the files into a folder, each as a whole: a reader sees the file before or the file after. */
export function writeFiles(folder: string, files: readonly PublishedFile[]): void {
  mkdirSync(join(folder, 'providers'), { recursive: true });
  for (const { path, text } of files) {
    const target = join(folder, path);
    writeFileSync(`${target}.new`, text);
    renameSync(`${target}.new`, target);
  }
}
