import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { offersOf } from './price-list.ts';
import { type MarketReply, type MarketUser, type ProviderLetter, SevenProviders } from './seven-providers.ts';

/** M: Deployments, rule 2, Volume rules and Per-provider `volumeIds` rules, with every server in between. */
interface Rules {
  letter: ProviderLetter;
  offer: string;
  region: string;
  stops: boolean;
  restarts: boolean;
  /** Null: it has no volumes. `atLaunch`: how many may be named there. */
  volumes: {
    cloudId?: string;
    elsewhere: string;
    atLaunch: number;
    isShared: boolean;
    attaches: boolean;
    grows: boolean;
    isRenamed: boolean;
    leastGb: number;
    mostGb: number;
    longestName: number;
  } | null;
}

const RULES: Rules[] = [
  {
    letter: 'a',
    offer: 'a-cpu-8x32',
    region: 'us-dallas',
    stops: false,
    restarts: false,
    volumes: {
      elsewhere: 'eu-frankfurt',
      atLaunch: 10,
      isShared: true,
      attaches: true,
      grows: true,
      isRenamed: true,
      leastGb: 1,
      mostGb: 10_000,
      longestName: 60,
    },
  },
  { letter: 'b', offer: 'b-rtx-4090-1x', region: 'us-ashburn', stops: false, restarts: false, volumes: null },
  {
    letter: 'c',
    offer: 'c-cpu-2x8',
    region: 'eu-stockholm',
    stops: false,
    restarts: false,
    volumes: {
      ...{
        elsewhere: 'us-denver',
        cloudId: 'cloud-stockholm-2',
        atLaunch: 1,
        isShared: false,
        attaches: false,
      },
      grows: false,
      isRenamed: false,
      leastGb: 50,
      mostGb: 10_000,
      longestName: 60,
    },
  },
  {
    letter: 'd',
    offer: 'd-cpu-4x16',
    region: 'us-phoenix',
    stops: true,
    restarts: true,
    volumes: {
      elsewhere: 'eu-helsinki',
      atLaunch: 10,
      isShared: false,
      attaches: true,
      grows: false,
      isRenamed: false,
      leastGb: 1,
      mostGb: 51_200,
      longestName: 50,
    },
  },
  {
    letter: 'e',
    offer: 'e-cpu-8x32',
    region: 'eu-frankfurt',
    stops: true,
    restarts: true,
    volumes: {
      elsewhere: 'us-ashburn',
      atLaunch: 12,
      isShared: true,
      attaches: true,
      grows: true,
      isRenamed: false,
      leastGb: 1,
      mostGb: 262_144,
      longestName: 60,
    },
  },
  {
    letter: 'f',
    offer: 'f-cpu-8x32',
    region: 'us-newark',
    stops: false,
    restarts: true,
    volumes: {
      elsewhere: 'eu-london',
      atLaunch: 1,
      isShared: false,
      attaches: false,
      grows: false,
      isRenamed: false,
      leastGb: 1,
      mostGb: 16_000,
      longestName: 60,
    },
  },
  { letter: 'g', offer: 'g-cpu-16x64', region: 'us-chicago', stops: false, restarts: true, volumes: null },
];

let market: SevenProviders;
let user: MarketUser;
beforeAll(async () => {
  market = new SevenProviders({ watchIntervalMs: 5_000, leaseMs: 3_600_000 });
  await market.start();
  user = await market.addUser('user@example.com', 10_000, { minimumRuntimeMinutes: 0 });
});
afterAll(() => market.close());

function ask(method: string, path: string, body?: unknown): Promise<MarketReply> {
  return market.ask(method, path, { key: user.key, body });
}

function deploy(letter: string, offerId: string, region: string, extra: object = {}): Promise<MarketReply> {
  const offer = offersOf(`provider-${letter}`).find((it) => it.offerId === offerId);
  return ask('POST', '/api/deployments', {
    provider: `provider-${letter}`,
    offerId,
    gpuCount: offer?.gpuCount,
    region,
    operatingSystem: offer?.image,
    ssh_public_key: newPublicKey(),
    ...extra,
  });
}

async function untilRunning(id: string): Promise<void> {
  const isRunning = async () => (await ask('GET', `/api/deployments/${id}`)).body.status === 'running';
  await market.until(isRunning, `${id} running`, 5_000);
}

async function run(letter: string, offerId: string, region: string, extra: object = {}): Promise<string> {
  const { status, body } = await deploy(letter, offerId, region, extra);
  expect(status, JSON.stringify(body)).toBe(201);
  await untilRunning(body.id);
  return body.id;
}

function makeVolume({ letter, region, volumes }: Rules, extra: object = {}): Promise<MarketReply> {
  return ask('POST', '/api/volumes', {
    provider: `provider-${letter}`,
    region,
    name: 'data',
    sizeInGb: 100,
    ...(volumes?.cloudId !== undefined && { cloudId: volumes.cloudId }),
    ...extra,
  });
}

async function volume(rules: Rules, extra: object = {}): Promise<string> {
  const { status, body } = await makeVolume(rules, extra);
  expect(status, JSON.stringify(body)).toBe(201);
  return body.volumeId;
}

/** Nothing is asked of the provider, and it has nothing more than before. */
async function nothingIsSent(letter: string, refused: () => Promise<MarketReply>): Promise<MarketReply> {
  const provider = market.provider(`provider-${letter}`);
  const look = async () => [
    provider.writes.length,
    (await provider.instances()).length,
    provider.platform.volumes.size,
  ];
  const before = await look();
  const reply = await refused();
  expect(reply.status, JSON.stringify(reply.body)).toBe(400);
  await market.pass(20_000);
  expect(await look()).toEqual(before);
  return reply;
}

async function terminate(...ids: string[]): Promise<void> {
  for (const id of ids) expect((await ask('DELETE', `/api/deployments/${id}`)).status).toBe(200);
  await market.pass(10_000);
}

describe.each(RULES)('provider-$letter', ({ letter, offer, region, stops, restarts }) => {
  it(`${stops ? 'stops' : 'does not stop'} and ${restarts ? 'restarts' : 'does not restart'} an instance [real-stop-and-restart]`, async () => {
    const id = await run(letter, offer, region);
    const { body } = await ask('GET', `/api/deployments/${id}`);
    expect(body).toMatchObject({ supportsPause: stops, supportsRestart: restarts });
    expect(body.pauseUnsupportedReason === null).toBe(stops);
    const restarted = await ask('POST', `/api/deployments/${id}/restart`);
    expect(restarted.status).toBe(restarts ? 200 : 400);
    if (restarts) expect(restarted.body.status).toBe('running');
    expect(market.provider(`provider-${letter}`).writes.some(({ path }) => /\/x\/.*restart/.test(path))).toBe(
      restarts,
    );
    await market.until(
      async () => !(await ask('GET', `/api/deployments/${id}/reboot-status`)).body.restarting,
      'the restart',
    );
    await market.pass(60_000);
    const quote = await ask('GET', `/api/deployments/${id}/pause-quote`);
    const paused = await ask('POST', `/api/deployments/${id}/pause`);
    expect([quote.status, paused.status]).toEqual(stops ? [200, 200] : [400, 400]);
    if (stops) {
      expect(paused.body).toMatchObject({ status: 'stopped', stoppedHourlyRate: quote.body.hourlyRate });
      const resumed = await ask('POST', `/api/deployments/${id}/resume`);
      expect(resumed.status, JSON.stringify(resumed.body)).toBe(200);
      expect(resumed.body).toMatchObject({ status: 'running', ipAddress: body.ipAddress });
    } else expect(paused.body.error).toBe(body.pauseUnsupportedReason);
    await terminate(id);
    expect(await market.provider(`provider-${letter}`).instances()).toEqual([]);
  });
});

it.each(RULES.filter(({ volumes }) => volumes === null))(
  'provider-$letter has no volumes, and deploys nothing without those that were asked for',
  async (rules) => {
    const { letter, offer, region } = rules;
    await nothingIsSent(letter, () => makeVolume(rules));
    await nothingIsSent(letter, () => deploy(letter, offer, region, { volumeIds: ['vol-1'] }));
  },
);

describe.each(RULES.filter((it) => it.volumes !== null))('volumes of provider-$letter', (rules) => {
  const { letter, offer, region, volumes } = rules as Rules & { volumes: NonNullable<Rules['volumes']> };

  it('have sizes, names and places', async () => {
    const { longestName, leastGb, mostGb, cloudId } = volumes;
    for (const wrong of [
      { name: 'a'.repeat(longestName + 1) },
      { name: 'Data' },
      { sizeInGb: leastGb - 1 },
      { sizeInGb: mostGb + 1 },
      { region: 'nowhere' },
      ...(cloudId === undefined ? [] : [{ cloudId: 'nowhere' }, { cloudId: undefined }]),
    ])
      await nothingIsSent(letter, () => makeVolume(rules, wrong));
    const volumeId = await volume(rules, { name: 'a'.repeat(longestName), sizeInGb: leastGb });
    expect((await ask('DELETE', `/api/volumes/${volumeId}`)).status).toBe(200);
  });

  it('are named at launch, so many and in the same region [real-volumes-at-launch]', async () => {
    const { atLaunch, elsewhere } = volumes;
    const known = [await volume(rules)];
    await nothingIsSent(letter, () => deploy(letter, offer, elsewhere, { volumeIds: known }));
    if (atLaunch < 12) {
      const many = Array.from({ length: atLaunch + 1 }, (_, index) => known[index] ?? `vol-${index}`);
      await nothingIsSent(letter, () => deploy(letter, offer, region, { volumeIds: many }));
    }
    const id = await run(letter, offer, region, { volumeIds: known });
    const shown = async () => (await ask('GET', `/api/volumes/${known[0]}`)).body;
    await market.until(async () => (await shown()).status === 'attached', 'attached');
    expect((await shown()).attachedToDeploymentIds).toEqual([id]);
    expect((await ask('DELETE', `/api/volumes/${known[0]}`)).status).toBe(400);
    const another = await deploy(letter, offer, region, { volumeIds: known });
    expect(another.status, JSON.stringify(another.body)).toBe(volumes.isShared ? 201 : 400);
    if (another.status === 201) await untilRunning(another.body.id);
    await terminate(id, ...(another.status === 201 ? [another.body.id] : []));
    await market.until(async () => (await shown()).status === 'available', 'released');
    expect((await ask('DELETE', `/api/volumes/${known[0]}`)).status).toBe(200);
  });

  it('are attached, detached, made larger and renamed where they can be [real-volume-changes]', async () => {
    const { attaches, grows, isRenamed } = volumes;
    const id = await run(letter, offer, region);
    const volumeId = await volume(rules);
    const attach = () => ask('POST', `/api/volumes/${volumeId}/attach`, { deploymentId: id });
    const detach = () => ask('POST', `/api/volumes/${volumeId}/detach`, { deploymentId: id });
    if (attaches) {
      const attached = await attach();
      expect(attached.status, JSON.stringify(attached.body)).toBe(200);
      expect(attached.body).toMatchObject({ status: 'attached', attachedToDeploymentIds: [id] });
      expect((await detach()).body).toMatchObject({ status: 'available', attachedToDeploymentIds: [] });
    } else await nothingIsSent(letter, attach);
    const grown = () => ask('PATCH', `/api/volumes/${volumeId}`, { sizeInGb: 200 });
    if (grows) expect((await grown()).body).toMatchObject({ sizeInGb: 200 });
    else await nothingIsSent(letter, grown);
    await nothingIsSent(letter, () => ask('PATCH', `/api/volumes/${volumeId}`, { sizeInGb: 60 }));
    const renamed = () => ask('PATCH', `/api/volumes/${volumeId}`, { name: 'other' });
    if (isRenamed) expect((await renamed()).body).toMatchObject({ name: 'other' });
    else await nothingIsSent(letter, renamed);
    expect((await ask('DELETE', `/api/volumes/${volumeId}`)).status).toBe(200);
    await terminate(id);
  });
});

describe('bare metal and long reservations', () => {
  it.each([
    ['f', 'f-cpu-64x512-metal', 'us-newark', 60],
    ['g', 'g-rtx-pro-6000-8x-metal', 'us-chicago', 120],
    ['g', 'g-h200-sxm-8x-metal', 'us-chicago', 180],
    ['f', 'f-b200-sxm-8x-metal', 'eu-london', 240],
  ] as const)(
    'of provider-%s: %s in %s is not restarted, and runs for %d minutes',
    async (letter, offer, region, minutes) => {
      const id = await run(letter, offer, region);
      const { body } = await ask('GET', `/api/deployments/${id}`);
      expect(body).toMatchObject({
        instanceType: 'BARE_METAL',
        supportsRestart: false,
        supportsPause: false,
        providerMinimumRuntimeMinutes: minutes,
      });
      expect(
        (await nothingIsSent(letter, () => ask('POST', `/api/deployments/${id}/restart`))).body.code,
      ).toBe('ACTION_UNSUPPORTED');
      const check = await ask('GET', `/api/deployments/${id}/can-terminate`);
      expect(check.body).toMatchObject({ canTerminate: false, minimumRuntime: minutes });
      expect((await ask('DELETE', `/api/deployments/${id}`)).status).toBe(400);
      const startedAt = Date.parse(body.startedAt);
      while (market.clock.now() < startedAt + minutes * 60_000) await market.pass(20 * 60_000);
      expect((await ask('GET', `/api/deployments/${id}/can-terminate`)).body.canTerminate).toBe(true);
      await terminate(id);
    },
  );
});
