import { instancePath, volumePath } from '../../contract/paths.ts';
import type { Call } from '../../http/call.ts';
import { knownRegions } from '../catalog/regions.ts';
import { inDrawnOrder, waitBeforeRound } from '../drawn-order.ts';
import type { Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';

/** Ids that no provider issues, encoded for a path. */
const ODD_IDS: Readonly<Record<string, string>> = {
  'a slash': encodeURIComponent('never/issued'),
  'a way up': encodeURIComponent('../berth-conf-never-issued'),
  spaces: encodeURIComponent(' never issued '),
  'letters beyond ASCII': encodeURIComponent('nie-vergebene-größe-ü-漢字'),
  quotes: encodeURIComponent(`never'"issued'; --`),
  'a percent sign': encodeURIComponent('never%issued%2F'),
  '1000 characters': 'n'.repeat(1000),
};

/**
 * Requests unknown ids and routes, and sends malformed requests, in a drawn order. Each is sent twice, the second time
 * after a drawn wait, since the same refusal must have the same code.
 */
export const unknown: Scenario = {
  id: 'unknown',
  level: 'read-only',
  title: 'asks for ids and routes that do not exist',
  after: ['catalog'],
  buys: [],
  async run(session) {
    const id = session.draws.uuid('unknown/id');
    const requests = [
      ...ofInstance(session, id),
      ...(session.locations === undefined ? [] : ofVolume(id)),
      ...Object.values(ODD_IDS).map((odd) => read('unknown/odd-id', `/instances/${odd}`)),
      ...ofNoRoute(id),
      ...malformed(session),
    ];
    const { draws, settings } = session;
    for (let round = 1; round <= 2; round++) {
      await session.sleep(waitBeforeRound(draws, 'unknown', round, settings.pollIntervalMs));
      for (const request of inDrawnOrder(draws, 'unknown', requests, round)) await send(session, request);
    }
  },
};

/** A request of this scenario. The body of a create describes nothing that can be created. */
type Request = { step: string } & Call & { creates?: 'instance' | 'volume' };

async function send(session: Session, { step, creates, ...call }: Request): Promise<void> {
  if (creates === undefined) return void (await session.send(step, call));
  const { body, contentType } = call;
  // If something is created regardless, it is in the ledger.
  await session.create({
    type: creates,
    step,
    body: () => body,
    createsNothing: true,
    ...(contentType !== undefined && { contentType }),
  });
}

const read = (step: string, path: string): Request => ({ step, method: 'GET', path });
const post = (step: string, path: string, body?: unknown): Request => ({
  step,
  method: 'POST',
  path,
  ...(body !== undefined && { body }),
});

function ofInstance(session: Session, id: string): Request[] {
  const [region] = knownRegions(session);
  const of = { id, ...(region !== undefined && { region }) };
  return [
    read('unknown/instance/get', instancePath(of)),
    post('unknown/instance/start', instancePath(of, '/start')),
    post('unknown/instance/stop', instancePath(of, '/stop')),
    { step: 'unknown/instance/delete', method: 'DELETE', path: instancePath(of) },
  ];
}

function ofVolume(id: string): Request[] {
  const of = { id };
  return [
    read('unknown/volume/get', volumePath(of)),
    post('unknown/volume/attach', volumePath(of, '/attach'), { instance_ids: [id] }),
    post('unknown/volume/detach', volumePath(of, '/detach')),
    { step: 'unknown/volume/delete', method: 'DELETE', path: volumePath(of) },
  ];
}

/** Unsupported methods are only sent about ids that do not exist, in case the server does support them. */
function ofNoRoute(id: string): Request[] {
  return [
    read('unknown/route', '/berth-conf-no-such-route'),
    read('unknown/route', `${instancePath({ id })}/berth-conf-no-such-route`),
    { step: 'unknown/method', method: 'PUT', path: instancePath({ id }) },
    { step: 'unknown/method', method: 'PATCH', path: `${instancePath({ id })}/start` },
  ];
}

/** Bodies that describe nothing that can be created. */
function malformed({ locations }: Session): Request[] {
  const cut = '{"configuration_id": ';
  return [
    { ...post('unknown/malformed-json', '/instances', cut), creates: 'instance' },
    ...(locations === undefined
      ? []
      : [{ ...post('unknown/malformed-json', '/volumes', cut), creates: 'volume' } as const]),
    {
      ...post('unknown/content-type', '/instances', 'configuration_id=1'),
      contentType: 'text/plain',
      creates: 'instance',
    },
  ];
}
