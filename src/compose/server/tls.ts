import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { HttpServer } from '../../http/wire/server.ts';
import type { CertificateSeen } from '../../ports/certificates.ts';
import type { Clock } from '../../ports/clock.ts';
import { Fatal, fileProblem } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';

/** PEM files. */
interface TlsFiles {
  cert: string;
  key: string;
}

/** The flags of the files begin with it. */
export type TlsFlag = '--tls' | '--admin-tls';

/** Interval between checks of the files. A certificate is renewed days before the old one ends. */
export const CHECK_EVERY_MS = 30_000;

/**
 * Uses changed files for new connections. A pair that does not match, as during its replacement, is checked again.
 * `stamp` was taken before the files were first read. `seen` is called for each applied certificate.
 */
export function renewTls(
  files: TlsFiles,
  server: Pick<HttpServer, 'useTls' | 'onClosed'>,
  {
    clock,
    log,
    stamp = stampOf(files),
    seen = () => undefined,
    flag,
  }: {
    clock: Pick<Clock, 'setTimer'>;
    log: Log;
    stamp?: string;
    seen?: CertificateSeen | undefined;
    flag?: TlsFlag;
  },
): void {
  let used = stamp;
  let reported = used;
  const check = (): void => {
    timer = clock.setTimer(CHECK_EVERY_MS, check);
    const found = stampOf(files);
    if (found === used) return;
    try {
      const tls = readTls(files, flag);
      server.useTls(tls);
      used = found;
      log.info({ cert: files.cert }, 'new connections use the renewed certificate');
      seen({ pem: tls.cert.toString() });
    } catch (error) {
      if (reported !== found)
        log.error({ problem: (error as Error).message }, 'the old certificate stays in use');
    }
    reported = found;
  };
  let timer = clock.setTimer(CHECK_EVERY_MS, check);
  server.onClosed(() => timer.cancel());
}

/** A text that changes with each file, including a changed link and a file that becomes unreadable. */
export function stampOf({ cert, key }: TlsFiles): string {
  return [cert, key].map(stampOfFile).join(' ');
}

function stampOfFile(file: string): string {
  try {
    const found = statSync(file, { throwIfNoEntry: false, bigint: true });
    return found === undefined ? 'none' : `${found.dev}.${found.ino}.${found.size}.${found.mtimeNs}`;
  } catch (error) {
    return fileProblem(error);
  }
}

/** @throws {Fatal} with a sentence for the operator */
export function readTls({ cert, key }: TlsFiles, flag: TlsFlag = '--tls'): { cert: Buffer; key: Buffer } {
  const tls = {
    cert: readPem(cert, 'certificate', `${flag}-cert`),
    key: readPem(key, 'key', `${flag}-key`),
  };
  try {
    createSecureContext(tls);
  } catch (error) {
    throw new Fatal(
      `${cert} and ${key} are not a TLS certificate chain and its key (${(error as Error).message.split(':').at(-1)}): give PEM files that belong together, the key without a passphrase.`,
      { cause: error },
    );
  }
  return tls;
}

function readPem(file: string, what: string, flag: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Fatal(`The TLS ${what} ${file} cannot be read (${fileProblem(error)}): check ${flag}.`, {
      cause: error,
    });
  }
}
