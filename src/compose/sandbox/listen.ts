import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import { loadConfig } from '../../config/load.ts';
import { knownHostsOnly } from '../../http/api/known-hosts.ts';
import { appListener } from '../../http/api/listener.ts';
import { requestIds } from '../../http/api/request-context.ts';
import { errors, refuseWire } from '../../orchestrator/http/errors.ts';
import type { Log } from '../../ports/log.ts';
import { realNow } from '../../ports/timers.ts';
import { systemRandom } from '../../runtime/system.ts';
import { sendTo } from '../../sandbox/faults/connection.ts';
import type { Faults } from '../../sandbox/faults/faults.ts';
import { notFound } from '../../sandbox/router.ts';
import type { ListenOptions, SandboxListener } from '../../sandbox/sandbox.ts';
import { listen } from '../server/listen.ts';
import { type Certificates, createCertificates } from './certificates.ts';
import { isControl } from './control.ts';

type Fetch = (request: Request, socket: Socket) => Promise<Response>;
type Address = Omit<ListenOptions, 'tls'>;

const ONLY_CONTROL =
  'Only the control API is served over HTTP: the servers of this sandbox are served over HTTPS.';

/** Serves at a port. Requests for other host names than `hosts`, addresses and localhost are refused. @throws {Fatal} */
export async function listenOn(
  fetch: Fetch,
  { host = '127.0.0.1', port = 0, hosts = [] }: Address,
  log: Log,
  tls?: Pick<Parameters<typeof listen>[1], 'tls' | 'accept'>,
): Promise<Pick<SandboxListener, 'origin' | 'close'>> {
  const { config } = loadConfig({ flags: {}, env: {} });
  const app = new Hono<{ Bindings: HttpBindings }>()
    .use(
      knownHostsOnly({
        hosts: [host, ...hosts],
        isHostOptional: true,
        setting: '--hosts',
        log,
        trustedProxies: 0,
      }),
    )
    .all('*', async ({ req, env }) => {
      const answer = fetch(req.raw, env.incoming.socket);
      const tcpSocketOf = (socket: Socket): Socket => server.tcpSocketOf(socket);
      const response = await sendTo(env.outgoing as ServerResponse, answer, tcpSocketOf);
      // A clone: node-server would send the original as a real response if its own Response class was installed when
      // the original was made.
      return response ?? RESPONSE_ALREADY_SENT.clone();
    });
  const nextId = requestIds(systemRandom);
  const { server, origin } = await listen(
    { ...config, server: { ...config.server, host, port } },
    { nextId, refuse: refuseWire, log, ...tls },
    appListener(app.fetch, { errors, log, nextId, trustedProxies: 0 }),
  );
  return { origin, close: () => server.close(0) };
}

/**
 * Serves over HTTPS, with a certificate of a new CA. Its handshakes trigger faults. The control API is also served over
 * HTTP, at another port of 127.0.0.1, where they do not trigger.
 * @throws {Fatal}
 */
export async function listenOnTls(
  fetch: Fetch,
  address: Address,
  log: Log,
  faults: Pick<Faults, 'handshake'>,
): Promise<Omit<SandboxListener, typeof Symbol.asyncDispose>> {
  const { host, hosts = [] } = address;
  const names = new Set(['localhost', '127.0.0.1', '::1', ...(host === undefined ? [] : [host]), ...hosts]);
  const certificates = createCertificates([...names], realNow());
  const accept = acceptWith(certificates, faults);
  const served = await listenOn(fetch, address, log, { tls: certificates.valid, accept });
  const onlyControl: Fetch = async (request, socket) =>
    isControl(request) ? fetch(request, socket) : notFound(ONLY_CONTROL);
  const control = await listenOn(onlyControl, { hosts, port: 0 }, log).catch(async (error) => {
    await served.close();
    throw error;
  });
  return {
    origin: served.origin,
    controlOrigin: control.origin,
    ca: certificates.ca,
    close: async () => void (await Promise.all([served.close(), control.close()])),
  };
}

/** Lets the faults choose what the handshake of each connection meets. */
function acceptWith(certificates: Certificates, faults: Pick<Faults, 'handshake'>) {
  return (socket: Socket, begin: (tls: Certificates['valid']) => void): void => {
    const fault = faults.handshake();
    if (fault === undefined) begin(certificates.valid);
    else if (fault.certificate !== undefined) begin(certificates[fault.certificate]);
    else socket.once('data', () => socket.resetAndDestroy());
  };
}
