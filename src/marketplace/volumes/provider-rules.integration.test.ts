import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../contract/errors.ts';
import { attachVolume, detachVolume } from './attach.ts';
import { createVolume } from './create.ts';
import { releaseVolumes } from './intents.ts';
import {
  bodyFor,
  caller,
  launchWith,
  letters,
  makeVolume,
  openWorld,
  placeOf,
  type World,
} from './seven-providers.fixture.ts';
import { updateVolume } from './update.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld({ isInMemory: true });
});
afterEach(() => world.close());

type Letter = (typeof letters)[number];
type Expected = 'ok' | RegExp;
const NONE = /expected a provider with volumes: provider-a, provider-c, provider-d, provider-e, provider-f$/;

/** Runs an action and returns `ok` or the text of the 400. A refused action must not have written or sent anything. */
async function outcome(action: () => Promise<unknown>): Promise<string> {
  const before = { writes: world.writes(), volumes: await world.volumes() };
  try {
    await world.settle(action());
    return 'ok';
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.code).toBe('VALIDATION_ERROR');
    expect({ writes: world.writes(), volumes: await world.volumes() }).toEqual(before);
    return error.message;
  }
}

function create(letter: string, changes: Record<string, unknown> = {}) {
  return createVolume(world.deps, caller, bodyFor(letter, changes) as never);
}

const made = (letter: string, changes = {}) => makeVolume(world, letter, changes);
const deploy = (letter: string) => world.deploy(letter, placeOf[letter]?.region ?? '');

const launch = (letter: string, volumeIds: string[], region?: string) =>
  launchWith(world, letter, volumeIds, region);

async function attached(letter: string) {
  const { volumeId } = await made(letter);
  const deployment = await deploy(letter);
  await world.settle(attachVolume(world.deps, caller, volumeId, deployment.id));
  return { volumeId, deployment };
}

/** A volume that a running deployment has had since its launch. */
async function launched(letter: string) {
  const { volumeId } = await made(letter);
  const deployment = await launch(letter, [volumeId]);
  await world.update(deployment.id, { status: 'running', startedAt: world.clock.now() });
  for (let turn = 0; turn < 2; turn++) {
    await world.settle(world.sync(letter));
    await world.clock.advance(5_000);
  }
  return { volumeId, deployment };
}

/** A volume of a deployment that had it from its launch until it ended with `status`. */
async function ended(letter: string, status: 'failed' | 'terminated' | 'terminated-provider') {
  const { volumeId, deployment } = await launched(letter);
  await world.update(deployment.id, { status });
  await world.deps.store.transact((tx) => releaseVolumes(tx, deployment.id, world.clock.now()));
  return { volumeId, deployment };
}

/** Prepares the state and returns the action to try. */
type Given = (letter: string) => Promise<() => Promise<unknown>>;

/** Each rule of M: for volumes, by provider. Absent: the provider has no volumes to test it with. */
const table: Record<string, { given: Given; is: Partial<Record<Letter, Expected>> }> = {
  'a create [create-volume-plain]': {
    given: async (letter) => () => create(letter),
    is: { a: 'ok', b: NONE, c: 'ok', d: 'ok', e: 'ok', f: 'ok', g: NONE },
  },
  'a create without a region [create-volume-no-region]': {
    given: async (letter) => () => create(letter, { region: undefined }),
    is: {
      a: /^region: required for Provider A/,
      c: /^region: required for Provider C/,
      d: /^region: required/,
      e: /^region: required/,
      f: /^region: required for Provider F/,
    },
  },
  'a create in a region that is not there [create-volume-unknown-region]': {
    given: async (letter) => () => create(letter, { region: 'mars' }),
    is: Object.fromEntries(
      ['a', 'c', 'd', 'e', 'f'].map((letter) => [letter, /^region: expected a region with volumes: \w/]),
    ),
  },
  'a create without a cloudId [create-volume-no-cloud]': {
    given: async (letter) => () => create(letter, { cloudId: undefined }),
    is: { a: 'ok', c: /^cloudId: required for Provider C/, d: 'ok', e: 'ok', f: 'ok' },
  },
  'a create with a cloudId of another region [create-volume-wrong-cloud]': {
    given: async (letter) => () => create(letter, { cloudId: 'cloud-denver-1' }),
    is: {
      a: /^cloudId: Provider A has no clouds/,
      c: /^cloudId: expected a cloud of eu-stockholm: cloud-stockholm-1, cloud-stockholm-2$/,
      d: /^cloudId: Provider D has no clouds/,
      e: /^cloudId: Provider E has no clouds/,
      f: /^cloudId: Provider F has no clouds/,
    },
  },
  'a create on a deployment [create-volume-on-deployment]': {
    given: async (letter) => {
      const { id: deploymentId } = await deploy(letter);
      return () => create(letter, { deploymentId });
    },
    is: { a: 'ok', c: /^deploymentId: Provider C/, d: 'ok', e: 'ok', f: /^deploymentId: Provider F/ },
  },
  'a name of 50 characters [name-50-characters]': {
    given: async (letter) => () => create(letter, { name: 'n'.repeat(50) }),
    is: { a: 'ok', c: 'ok', d: 'ok', e: 'ok', f: 'ok' },
  },
  'a name of 60 characters [name-60-characters]': {
    given: async (letter) => () => create(letter, { name: 'n'.repeat(60) }),
    is: { a: 'ok', c: 'ok', d: /^name: expected at most 50 characters on Provider D$/, e: 'ok', f: 'ok' },
  },
  'a name of 61 characters [name-61-characters]': {
    given: async (letter) => () => create(letter, { name: 'n'.repeat(61) }),
    is: Object.fromEntries(
      ['a', 'c', 'd', 'e', 'f'].map((letter) => [letter, /^name: expected at most \d0/]),
    ),
  },
  'a name with a capital letter [name-capital-letter]': {
    given: async (letter) => () => create(letter, { name: 'Data' }),
    is: Object.fromEntries(['a', 'c', 'd', 'e', 'f'].map((letter) => [letter, /^name: expected lower-case/])),
  },
  'the smallest size [size-smallest]': {
    given: async (letter) => () => create(letter, { sizeInGb: letter === 'c' ? 50 : 1 }),
    is: { a: 'ok', c: 'ok', d: 'ok', e: 'ok', f: 'ok' },
  },
  'less than the smallest size [size-too-small]': {
    given: async (letter) => () => create(letter, { sizeInGb: letter === 'c' ? 49 : 0 }),
    is: {
      a: /^sizeInGb: expected 1 to 10000 GB/,
      c: /^sizeInGb: expected 50 to 10000 GB/,
      d: /^sizeInGb: expected 1 to 51200/,
      e: /^sizeInGb: expected 1 to 262144/,
      f: /^sizeInGb: expected 1 to 16000 GB on Provider F in us-newark$/,
    },
  },
  'a size that is no number': {
    given: async (letter) => () => create(letter, { sizeInGb: Number.NaN }),
    is: Object.fromEntries(['a', 'c', 'd', 'e', 'f'].map((letter) => [letter, /^sizeInGb: expected/])),
  },
  'the largest size [size-largest]': {
    given: async (letter) => () =>
      create(letter, { sizeInGb: { a: 10000, c: 10000, d: 51200, e: 262144, f: 16000 }[letter] ?? 1 }),
    is: { a: 'ok', c: 'ok', d: 'ok', e: 'ok', f: 'ok' },
  },
  'a size above the largest [size-too-large]': {
    given: async (letter) => () =>
      create(letter, { sizeInGb: { a: 10001, c: 10001, d: 51201, e: 262145, f: 16001 }[letter] ?? 1 }),
    is: Object.fromEntries(['a', 'c', 'd', 'e', 'f'].map((letter) => [letter, /^sizeInGb: expected \d/])),
  },
  'a size of 40961 GB in another region [size-largest-by-region]': {
    given: async (letter) => () =>
      create(letter, {
        region: placeOf[letter]?.elsewhere,
        sizeInGb: 40961,
        ...(letter === 'c' && { cloudId: 'cloud-denver-1' }),
      }),
    is: {
      a: /^sizeInGb: expected 1 to 10000/,
      c: /^sizeInGb: expected 50 to 10000/,
      d: /^sizeInGb: expected 1 to 40960 GB on Provider D in ap-tokyo$/,
      e: 'ok',
      f: /^sizeInGb: expected 1 to 16000/,
    },
  },
  'an attach to a running deployment [attach-running]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      const { id } = await deploy(letter);
      return () => attachVolume(world.deps, caller, volumeId, id);
    },
    is: {
      a: 'ok',
      d: 'ok',
      e: 'ok',
      c: /^Provider C attaches a volume only when the instance is created/,
      f: /^Provider F attaches a volume only when the instance is deployed/,
    },
  },
  'an attach to a deployment that does not run [attach-not-running]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      const { id } = await deploy(letter);
      await world.update(id, { status: 'stopped', pausedAt: world.clock.now() });
      return () => attachVolume(world.deps, caller, volumeId, id);
    },
    is: { a: /stopped/, d: /stopped/, e: /stopped/ },
  },
  'an attach to a deployment of another region [attach-other-region]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      const { id } = await world.deploy(letter, placeOf[letter]?.elsewhere ?? '');
      return () => attachVolume(world.deps, caller, volumeId, id);
    },
    is: { a: /the volume vol-\w+ is in us-dallas, the/, d: /is in us-phoenix/, e: /is in eu-frankfurt/ },
  },
  'an attach to a deployment of another provider [attach-other-provider]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      const { id } = await deploy('b');
      return () => attachVolume(world.deps, caller, volumeId, id);
    },
    is: { a: /is at provider-a, the deployment at provider-b/, d: /is at provider-d/, e: /is at provider-e/ },
  },
  'an attach to a second deployment [attach-second-deployment]': {
    given: async (letter) => {
      const { volumeId } = await attached(letter);
      const { id } = await deploy(letter);
      return () => attachVolume(world.deps, caller, volumeId, id);
    },
    is: { a: 'ok', d: /on Provider D a volume can be attached to one instance at a time$/, e: 'ok' },
  },
  'an eleventh volume of a deployment [eleventh-volume]': {
    given: async (letter) => {
      const deployment = await deploy(letter);
      for (let nth = 1; nth <= 10; nth++) await made(letter, { deploymentId: deployment.id });
      const { volumeId } = await made(letter);
      return () => attachVolume(world.deps, caller, volumeId, deployment.id);
    },
    is: {
      a: /^deploymentId: Provider A allows at most 10 volumes per instance$/,
      d: /^deploymentId: Provider D allows at most 10 volumes per instance$/,
      e: 'ok',
    },
  },
  'a detach from a running deployment [detach-running]': {
    given: async (letter) => {
      const { volumeId, deployment } = await launched(letter);
      return () => detachVolume(world.deps, caller, volumeId, deployment.id);
    },
    is: {
      a: 'ok',
      d: 'ok',
      e: 'ok',
      c: /^Provider C does not detach a volume by hand before the deployment is failed/,
      f: /^Provider F releases a volume when its instance is terminated/,
    },
  },
  ...Object.fromEntries(
    (['failed', 'terminated', 'terminated-provider'] as const).map((status) => [
      `a detach from a deployment that is ${status} [detach-ended]`,
      {
        given: async (letter: string) => {
          const { volumeId, deployment } = await ended(letter, status);
          return () => detachVolume(world.deps, caller, volumeId, deployment.id);
        },
        is: { a: 'ok', c: 'ok', d: 'ok', e: 'ok', f: 'ok' },
      } as const,
    ]),
  ),
  'an attach after a detach [attach-after-detach]': {
    given: async (letter) => {
      const { volumeId, deployment } = await attached(letter);
      await world.settle(detachVolume(world.deps, caller, volumeId, deployment.id));
      return () => attachVolume(world.deps, caller, volumeId, deployment.id);
    },
    is: { a: 'ok', d: 'ok', e: 'ok' },
  },
  'a larger size [update-larger]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      return () => updateVolume(world.deps, caller, volumeId, { sizeInGb: 200 });
    },
    is: {
      a: 'ok',
      e: 'ok',
      c: /^Volumes of Provider C cannot be changed/,
      d: /^Volumes of Provider D cannot be changed/,
      f: /^Volumes of Provider F cannot be changed/,
    },
  },
  'a smaller size [update-smaller]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      return () => updateVolume(world.deps, caller, volumeId, { sizeInGb: 99 });
    },
    is: { a: /never shrinks; expected at least 100 GB$/, e: /never shrinks/, c: /cannot be changed/ },
  },
  'a new name [update-name]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      return () => updateVolume(world.deps, caller, volumeId, { name: 'other' });
    },
    is: {
      a: 'ok',
      e: /^name: volumes of Provider E cannot be renamed$/,
      c: /cannot be changed/,
      d: /cannot be changed/,
      f: /cannot be changed/,
    },
  },
  'an update that changes nothing [update-nothing]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      return () => updateVolume(world.deps, caller, volumeId, {});
    },
    is: { a: 'ok', e: 'ok', c: /cannot be changed/, d: /cannot be changed/, f: /cannot be changed/ },
  },
  'a launch with one volume [launch-one-volume]': {
    given: async (letter) => {
      const volumeId = /[bg]/.test(letter) ? 'vol-x' : (await made(letter)).volumeId;
      return () => launch(letter, [volumeId]);
    },
    is: {
      a: 'ok',
      b: /^volumeIds: Provider B does not offer volumes/,
      c: 'ok',
      d: 'ok',
      e: 'ok',
      f: 'ok',
      g: /^volumeIds: Provider G does not offer volumes/,
    },
  },
  'a launch with two volumes [launch-two-volumes]': {
    given: async (letter) => {
      const volumeIds = [(await made(letter)).volumeId, (await made(letter)).volumeId];
      return () => launch(letter, volumeIds);
    },
    is: {
      a: 'ok',
      c: /^volumeIds: Provider C allows at most 1 volume per instance$/,
      d: 'ok',
      e: 'ok',
      f: /^volumeIds: Provider F allows at most 1 volume per instance$/,
    },
  },
  'a launch with a volume of another region [launch-volume-other-region]': {
    given: async (letter) => {
      const { volumeId } = await made(letter);
      return () => launch(letter, [volumeId], placeOf[letter]?.elsewhere);
    },
    is: Object.fromEntries(
      ['a', 'c', 'd', 'e', 'f'].map((letter) => [letter, /^volumeIds: the volume vol-\w+ is in/]),
    ),
  },
  'a launch with a volume that is on another deployment [launch-shared-volume]': {
    given: async (letter) => {
      const { volumeId } = await launched(letter);
      return () => launch(letter, [volumeId]);
    },
    is: {
      a: 'ok',
      e: 'ok',
      c: /can be attached to one instance at a time/,
      d: /can be attached to one instance at a time/,
      f: /can be attached to one instance at a time/,
    },
  },
};

describe.each(letters)('on provider-%s', (letter) => {
  const rows = Object.entries(table).filter(([, { is }]) => is[letter] !== undefined);
  it.each(rows)('%s [volume-rules-by-provider]', async (_, { given, is }) => {
    const expected = is[letter] as Expected;
    const action = await given(letter);
    expect(await outcome(action)).toEqual(expected === 'ok' ? 'ok' : expect.stringMatching(expected));
  });
});

it.each(['a', 'c', 'd', 'e', 'f'])(
  'a volume of provider-%s is available again once its instance is terminated [volume-free-after-termination]',
  async (letter) => {
    const { volumeId, deployment } = await ended(letter, 'terminated');
    world.plain(letter).delete(deployment.providerInstanceId ?? '');
    for (let turn = 0; turn < 3; turn++) {
      await world.clock.advance(10_000);
      expect(world.plain(letter).instances).toEqual([]);
      await world.settle(world.sync(letter));
    }
    const [volume] = await world.volumes();
    expect(volume).toMatchObject({ volumeId, status: 'available', action: null });
    expect(world.plain(letter).volumes).toMatchObject([{ status: 'AVAILABLE', attached_instance_ids: [] }]);
  },
);
