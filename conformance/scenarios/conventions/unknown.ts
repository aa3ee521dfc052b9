import { randomUUID } from 'node:crypto';
import { instancePath, volumePath } from '../../contract/paths.ts';
import { knownRegions } from '../catalog/catalog.ts';
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
 * Requests unknown ids and routes, and sends malformed requests. Each is sent twice, since the same refusal must have
 * the same code.
 */
export const unknown: Scenario = {
  id: 'unknown',
  level: 'read-only',
  title: 'asks for ids and routes that do not exist',
  after: ['catalog'],
  buys: [],
  async run(session) {
    const id = randomUUID();
    for (let round = 1; round <= 2; round++) {
      await askForInstance(session, id);
      if (session.locations !== undefined) await askForVolume(session, id);
      for (const odd of Object.values(ODD_IDS)) await session.get('unknown/odd-id', `/instances/${odd}`);
      await askForNoRoute(session, id);
      await sendMalformed(session);
    }
  },
};

async function askForInstance(session: Session, id: string): Promise<void> {
  const [region] = knownRegions(session);
  const of = { id, ...(region !== undefined && { region }) };
  await session.get('unknown/instance/get', instancePath(of));
  await session.post('unknown/instance/start', instancePath(of, '/start'));
  await session.post('unknown/instance/stop', instancePath(of, '/stop'));
  await session.delete('unknown/instance/delete', instancePath(of));
}

async function askForVolume(session: Session, id: string): Promise<void> {
  const of = { id };
  await session.get('unknown/volume/get', volumePath(of));
  await session.post('unknown/volume/attach', volumePath(of, '/attach'), { instance_ids: [id] });
  await session.post('unknown/volume/detach', volumePath(of, '/detach'));
  await session.delete('unknown/volume/delete', volumePath(of));
}

/** Unsupported methods are only sent about ids that do not exist, in case the server does support them. */
async function askForNoRoute(session: Session, id: string): Promise<void> {
  await session.get('unknown/route', '/berth-conf-no-such-route');
  await session.get('unknown/route', `${instancePath({ id })}/berth-conf-no-such-route`);
  await session.send('unknown/method', { method: 'PUT', path: instancePath({ id }) });
  await session.send('unknown/method', { method: 'PATCH', path: `${instancePath({ id })}/start` });
}

/** Sends bodies that describe nothing that can be created. If something is created regardless, it is in the ledger. */
async function sendMalformed(session: Session): Promise<void> {
  const cut = {
    step: 'unknown/malformed-json',
    body: () => '{"configuration_id": ',
    createsNothing: true,
  } as const;
  await session.create({ ...cut, type: 'instance' });
  if (session.locations !== undefined) await session.create({ ...cut, type: 'volume' });
  const text = { body: () => 'configuration_id=1', contentType: 'text/plain', createsNothing: true } as const;
  await session.create({ ...text, type: 'instance', step: 'unknown/content-type' });
}
