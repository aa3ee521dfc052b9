import { connect } from 'node:net';
import { config, type Diagnosis, note, ok } from './diagnosis.ts';

const SUBJECT = 'SSH';
const TIMEOUT_MS = 10_000;

/** Whether this machine gets out to SSH. Without an address where something listens there is nothing to try. */
export async function sshEgress(address: { host: string; port: number } | undefined): Promise<Diagnosis> {
  if (address === undefined)
    return note(
      SUBJECT,
      'whether this machine reaches SSH on the instances cannot be known before there is one',
      'to try it now, name an address where SSH listens with --ssh-host HOST:PORT',
    );
  const { host, port } = address;
  const result = await tryConnecting(host, port);
  if (result === 'connected') return ok(SUBJECT, `${host}:${port} takes connections`);
  return config(
    SUBJECT,
    `${host}:${port} takes no connection from this machine (${result})`,
    'let the firewall of this network pass TCP out to the SSH ports of the instances',
  );
}

function tryConnecting(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const finish = (result: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => finish(`no answer within ${TIMEOUT_MS / 1000} s`), TIMEOUT_MS);
    socket.once('connect', () => finish('connected'));
    socket.on('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
  });
}
