import ssh2 from 'ssh2';
import type { SshTarget } from '../ports/ssh-probe.ts';

const READY_WITHIN_MS = 20_000;
const ENDS_WITHIN_MS = 60_000;

/**
 * Logs in with a private key (PEM, OpenSSH), runs a line in the user's shell and resolves with its output. The host
 * key is not verified: use it only for machines that a check has made and will destroy.
 *
 * @throws {Error} if the login is refused, or the line fails or hangs
 */
export function runInGuest(
  { host, port, username }: SshTarget,
  privateKey: string,
  line: string,
): Promise<string> {
  const client = new ssh2.Client();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const late = setTimeout(
    () => reject(new Error(`${line}: no end after ${ENDS_WITHIN_MS} ms`)),
    ENDS_WITHIN_MS,
  );
  client
    .on('error', reject)
    .on('close', () => reject(new Error('the connection was closed')))
    .on('ready', () =>
      client.exec(line, (error, stream) => {
        if (error !== undefined) return reject(error);
        const printed: Buffer[] = [];
        const complained: Buffer[] = [];
        stream.stderr.on('data', (chunk: Buffer) => complained.push(chunk));
        stream
          .on('data', (chunk: Buffer) => printed.push(chunk))
          .on('close', (status: number | null) => {
            if (status === 0) resolve(Buffer.concat(printed).toString());
            else reject(new Error(`${line}: ended with ${status}: ${Buffer.concat(complained)}`));
          });
      }),
    )
    .connect({ host, port, username, privateKey, readyTimeout: READY_WITHIN_MS });
  return promise.finally(() => {
    clearTimeout(late);
    client.end();
  });
}
