import { expect, it } from 'vitest';
import type { OwnerRef, VolumeDriver } from '../../orchestrator/model/platform-driver.ts';
import { create, type DriverSuiteContext, destroy, finish, finishAfterCrash, NOTE } from './calls.suite.ts';

/** What the core relies on of volumes; a platform without any has none of it. */
export function describeVolumes(context: () => DriverSuiteContext): void {
  function volumesOf({ driver }: DriverSuiteContext): VolumeDriver | undefined {
    expect(driver.volumes !== undefined, 'volumes and the manifest disagree').toBe(
      driver.manifest.attachVolume !== 'none',
    );
    return driver.volumes;
  }
  const make = (volumes: VolumeDriver, ref: OwnerRef) =>
    finish(context(), (cookie) => volumes.create(context().volumeSpec(ref), cookie));
  const look = async (volumes: VolumeDriver, ref: OwnerRef) => {
    const presence = await volumes.get(ref);
    return presence.answer === 'observed' ? presence.value.attachedTo : presence.answer;
  };

  it('makes, lists and destroys volumes, each call repeated', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    expect(await look(volumes, 'suite-v')).toBe('gone');
    const made = await make(volumes, 'suite-v');
    expect(await make(volumes, 'suite-v')).toEqual(made);
    expect(await volumes.list()).toEqual({ answer: 'listed', items: [made] });
    await finish(context(), (cookie) => volumes.destroy('suite-v', cookie));
    expect(await volumes.destroy('suite-v', null)).toEqual({ outcome: 'done', value: null });
    expect(await volumes.destroy('suite-none', null)).toEqual({ outcome: 'done', value: null });
    expect(await look(volumes, 'suite-v')).toBe('gone');
  });

  it('goes on with each call on a volume of which the core knows nothing any more', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    const { driver, volumeSpec } = context();
    await create(context(), 'suite-a');
    if (driver.manifest.attachVolume === 'cold')
      await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    const spec = { ...volumeSpec('suite-v'), note: NOTE };
    const made = await finishAfterCrash(context(), (cookie) => volumes.create(spec, cookie));
    expect(made.note).toBe(driver.manifest.keepsNotes ? NOTE : undefined);
    await finishAfterCrash(context(), (cookie) => volumes.attach('suite-v', 'suite-a', cookie));
    expect(await volumes.list()).toMatchObject({
      items: [{ ref: 'suite-v', attachedTo: ['suite-a'], createdAt: made.createdAt }],
    });
    await finishAfterCrash(context(), (cookie) => volumes.detach('suite-v', 'suite-a', cookie));
    expect(await look(volumes, 'suite-v')).toEqual([]);
    await finishAfterCrash(context(), (cookie) => volumes.destroy('suite-v', cookie));
    expect(await look(volumes, 'suite-v')).toBe('gone');
  });

  it('attaches and detaches a volume, each call repeated', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    const { driver } = context();
    await Promise.all([make(volumes, 'suite-v'), create(context(), 'suite-a')]);
    const attach = (cookie: string | null) => volumes.attach('suite-v', 'suite-a', cookie);
    if (driver.manifest.attachVolume === 'cold') {
      expect(await attach(null)).toMatchObject({ outcome: 'failed', code: 'conflict', sideEffect: 'none' });
      await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    }
    await finish(context(), attach);
    await finish(context(), attach);
    expect(await look(volumes, 'suite-v')).toEqual(['suite-a']);

    const detach = (cookie: string | null) => volumes.detach('suite-v', 'suite-a', cookie);
    await finish(context(), detach);
    await finish(context(), detach);
    expect(await look(volumes, 'suite-v')).toEqual([]);
  });

  it('makes a volume larger, and never smaller, or says that it cannot', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    const { driver, volumeSpec } = context();
    const { sizeGb } = volumeSpec('suite-v');
    const resize = (to: number) => (cookie: string | null) => volumes.resize('suite-v', to, cookie);
    expect(await resize(sizeGb)(null)).toMatchObject({ outcome: 'failed', sideEffect: 'none' });
    const made = await make(volumes, 'suite-v');
    if (driver.manifest.resizeVolume === 'none') {
      expect(await resize(2 * sizeGb)(null)).toMatchObject({ outcome: 'failed', code: 'unsupported' });
      return;
    }
    const expected = made.sizeGb === undefined ? made : { ...made, sizeGb: 2 * sizeGb };
    expect(await finishAfterCrash(context(), resize(2 * sizeGb))).toEqual(expected);
    expect(await resize(2 * sizeGb)(null)).toEqual({ outcome: 'done', value: expected });
    expect(await resize(sizeGb)(null)).toMatchObject({
      outcome: 'failed',
      code: 'invalid',
      sideEffect: 'none',
    });
    expect(await volumes.get('suite-v')).toEqual({ answer: 'observed', value: expected });
  });

  it('resizes a volume that is attached, or refuses and changes nothing', async () => {
    const volumes = volumesOf(context());
    const { driver, volumeSpec } = context();
    if (volumes === undefined || driver.manifest.resizeVolume === 'none') return;
    const to = 2 * volumeSpec('suite-v').sizeGb;
    await Promise.all([make(volumes, 'suite-v'), create(context(), 'suite-a')]);
    if (driver.manifest.attachVolume === 'cold')
      await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    await finish(context(), (cookie) => volumes.attach('suite-v', 'suite-a', cookie));
    const resize = (cookie: string | null) => volumes.resize('suite-v', to, cookie);
    if (driver.manifest.resizeVolume === 'attached') await finish(context(), resize);
    else
      expect(await resize(null)).toMatchObject({ outcome: 'failed', code: 'conflict', sideEffect: 'none' });
    expect(await look(volumes, 'suite-v')).toEqual(['suite-a']);
  });

  it('keeps a volume when its machine is destroyed, and drops the attachment', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    const { driver } = context();
    await Promise.all([make(volumes, 'suite-v'), create(context(), 'suite-a')]);
    if (driver.manifest.attachVolume === 'cold')
      await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    await finish(context(), (cookie) => volumes.attach('suite-v', 'suite-a', cookie));
    await destroy(context(), 'suite-a');
    expect(await look(volumes, 'suite-v')).toEqual([]);
  });

  it('destroys a volume that is still attached', async () => {
    const volumes = volumesOf(context());
    if (volumes === undefined) return;
    const { driver } = context();
    await Promise.all([make(volumes, 'suite-v'), create(context(), 'suite-a')]);
    if (driver.manifest.attachVolume === 'cold')
      await finish(context(), (cookie) => driver.stop('suite-a', cookie));
    await finish(context(), (cookie) => volumes.attach('suite-v', 'suite-a', cookie));
    await finish(context(), (cookie) => volumes.destroy('suite-v', cookie));
    expect(await look(volumes, 'suite-v')).toBe('gone');
  });
}
