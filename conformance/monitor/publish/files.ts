import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { badge } from '../../report/badge.ts';
import { type Certificate, certificateDigest, type Status } from '../certificate/certificate.ts';
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

const BADGES: Readonly<Record<Status, readonly [words: string, colour: string]>> = {
  certified: ['certified', '#2e7d32'],
  revoked: ['revoked', '#c62828'],
  'not enough': ['not enough seen', '#b26a00'],
};

/** The status as an SVG image, with the day and the beginning of the certificate's digest. */
function toBadge(certificate: Certificate): string {
  const { status, issued_at, contract_version } = certificate;
  const [words, colour] = BADGES[status];
  const digest = certificateDigest(certificate).slice(0, 12);
  return badge(contract_version, `${words}, ${issued_at.slice(0, 10)}, ${digest}`, colour);
}
