import { describe, expect, it } from 'vitest';
import type { CloudParts } from './cloud.ts';
import { clientOf, memoryCloud, URLS } from './memory-cloud.fixture.ts';

const { nova, cinder } = URLS;
const MINUTE = 60_000;

async function setUp(parts: Partial<CloudParts> = {}) {
  const memory = memoryCloud(parts);
  const { cloud, wait } = memory;
  const { ask } = await clientOf(memory);
  const [flavorRef, imageRef] = [[...cloud.flavors.keys()][0], [...cloud.images.keys()][0]];
  const create = async (): Promise<string> => {
    const server = { name: 'one', flavorRef, imageRef, networks: 'none' };
    const { body } = await ask('POST', `${nova}/servers`, { server });
    return (body as { server: { id: string } }).server.id;
  };
  const active = async (): Promise<string> => {
    const id = await create();
    await wait(5 * MINUTE);
    return id;
  };
  const stateOf = async (id: string): Promise<string> => {
    const { status, body } = await ask('GET', `${nova}/servers/${id}`);
    if (status === 404) return 'gone';
    const { server } = body as { server: { status: string; 'OS-EXT-STS:task_state': string | null } };
    return `${server.status} ${server['OS-EXT-STS:task_state'] ?? ''}`.trim();
  };
  /** Each state that a server is shown in until nothing changes. */
  const course = async (id: string): Promise<string> => {
    const seen: string[] = [];
    for (let step = 0; step < 1_200; step++) {
      const state = await stateOf(id);
      if (seen.at(-1) !== state) seen.push(state);
      await wait(50);
    }
    return seen.join(', ');
  };
  const act = (id: string, name: string) => ask('POST', `${nova}/servers/${id}/action`, { [name]: null });
  const listed = async (query = ''): Promise<unknown[]> =>
    ((await ask('GET', `${nova}/servers/detail${query}`)).body as { servers: unknown[] }).servers;
  return { ...memory, ask, create, active, stateOf, course, act, listed };
}

describe('servers', () => {
  it.each([
    ['os-stop', 'ACTIVE powering-off, SHUTOFF'],
    ['pause', 'ACTIVE pausing, PAUSED'],
    ['rescue', 'ACTIVE rescuing, RESCUE'],
    ['reboot', 'HARD_REBOOT rebooting_hard, HARD_REBOOT reboot_started_hard, ACTIVE'],
    ['migrate', 'RESIZE resize_prep, RESIZE resize_migrating, RESIZE resize_finish, VERIFY_RESIZE'],
    ['os-migrateLive', 'MIGRATING migrating, ACTIVE'],
    [
      'shelve',
      'ACTIVE shelving, ACTIVE shelving_image_uploading, SHELVED shelving_offloading, SHELVED_OFFLOADED',
    ],
    ['forceDelete', 'ACTIVE deleting, gone'],
  ])('%s takes them through their states', async (action, states) => {
    const { create, act, course } = await setUp();
    const id = await create();
    expect(await course(id)).toBe(
      'BUILD scheduling, BUILD networking, BUILD block_device_mapping, BUILD spawning, ACTIVE',
    );
    expect((await act(id, action)).status).toBe(200);
    expect(await course(id)).toBe(states);
  });

  it('refuse an action in another state, and while something is done', async () => {
    const { create, act, wait } = await setUp();
    const id = await create();
    expect((await act(id, 'os-stop')).text).toContain('while it is in vm_state building');
    await wait(5 * MINUTE);
    await act(id, 'os-stop');
    expect((await act(id, 'pause')).text).toContain('while it is in task_state powering-off');
  });

  it('that are shelved keep their image and give back their room', async () => {
    const { active, act, wait, cloud } = await setUp();
    const id = await active();
    const used = () => cloud.computes.reduce((sum, one) => sum + cloud.used(one, 'VCPU'), 0);
    expect(used()).toBe(2);
    await act(id, 'shelve');
    await wait(10 * MINUTE);
    expect(used()).toBe(0);
    expect([...cloud.images.values()]).toContainEqual(
      expect.objectContaining({ name: 'one-shelved', server: id }),
    );
  });

  it('whose host is down lose their record at once, and take no other command until it is back', async () => {
    const { active, act, ask, stateOf, wait, cloud } = await setUp();
    const [one, two] = [await active(), await active()];
    for (const compute of cloud.computes) compute.isSilent = true;
    await act(one, 'os-stop');
    await wait(10 * MINUTE);
    expect(await stateOf(one)).toBe('ACTIVE powering-off');
    await ask('DELETE', `${nova}/servers/${two}`);
    expect(await stateOf(two)).toBe('gone');
    for (const compute of cloud.computes) compute.isSilent = false;
    await wait(2 * MINUTE);
    expect(await stateOf(one)).toBe('SHUTOFF');
  });

  it('of a cell that is down are shown in part, found by no filter, and changed by no request', async () => {
    const { cloud, create, ask, listed } = await setUp();
    const id = await create();
    cloud.isCellDown = true;
    expect(await listed()).toEqual([{ id, status: 'UNKNOWN' }]);
    for (const query of ['?tags=one', '?name=one']) expect(await listed(query)).toEqual([]);
    expect((await ask('DELETE', `${nova}/servers/${id}`)).status).toBe(500);
  });

  it('that were deleted are in no list, and restored or reclaimed later, if the cloud reclaims', async () => {
    const { active, act, ask, stateOf, listed, wait } = await setUp({ reclaimMs: 10 * MINUTE });
    const [one, two] = [await active(), await active()];
    for (const id of [one, two]) await ask('DELETE', `${nova}/servers/${id}`);
    await wait(MINUTE);
    expect(await listed()).toEqual([]);
    expect(await stateOf(one)).toBe('SOFT_DELETED');
    await act(one, 'restore');
    await wait(15 * MINUTE);
    expect([await stateOf(one), await stateOf(two)]).toEqual(['ACTIVE', 'gone']);
  });
});

it('a volume outlives its server, and is reserved while that is off its host', async () => {
  const { active, act, ask, wait, cloud } = await setUp();
  const server = await active();
  await ask('POST', `${cinder}/volumes`, { volume: { name: 'v', size: 5 } });
  await wait(MINUTE);
  const [volume] = cloud.volumes.values();
  await ask('POST', `${nova}/servers/${server}/os-volume_attachments`, {
    volumeAttachment: { volumeId: volume?.id },
  });
  await wait(MINUTE);
  expect(volume?.status).toBe('in-use');
  await act(server, 'shelve');
  await wait(10 * MINUTE);
  expect(volume?.status).toBe('reserved');
  await ask('DELETE', `${nova}/servers/${server}`);
  expect(volume?.status).toBe('available');
});
