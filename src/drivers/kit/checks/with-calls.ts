import type {
  Call,
  OwnerRef,
  PlatformDriver,
  VolumeDriver,
  VolumeSpec,
} from '../../../orchestrator/model/platform-driver.ts';
import { withOverrides } from '../../../ports/with-overrides.ts';

/** Adds limits from `next` to each call that changes something and has none. */
export function withCalls(driver: PlatformDriver, next: () => Call): PlatformDriver {
  const { disown } = driver;
  return withOverrides(driver, {
    create: (spec, cookie, call = next()) => driver.create(spec, cookie, call),
    stop: (ref, cookie, call = next()) => driver.stop(ref, cookie, call),
    start: (ref, cookie, call = next()) => driver.start(ref, cookie, call),
    restart: (ref, id, cookie, call = next()) => driver.restart(ref, id, cookie, call),
    destroy: (ref, cookie, order, call = next()) => driver.destroy(ref, cookie, order, call),
    ...(disown !== undefined && {
      disown: (ref: OwnerRef, cookie: string | null, call = next()) => disown.call(driver, ref, cookie, call),
    }),
    ...(driver.volumes !== undefined && { volumes: withVolumeCalls(driver.volumes, next) }),
  });
}

function withVolumeCalls(volumes: VolumeDriver, next: () => Call): VolumeDriver {
  const { copy } = volumes;
  return withOverrides(volumes, {
    create: (spec, cookie, call = next()) => volumes.create(spec, cookie, call),
    attach: (ref, machine, cookie, call = next()) => volumes.attach(ref, machine, cookie, call),
    detach: (ref, machine, cookie, call = next()) => volumes.detach(ref, machine, cookie, call),
    resize: (ref, sizeGb, cookie, call = next()) => volumes.resize(ref, sizeGb, cookie, call),
    ...(copy !== undefined && {
      copy: (ref: OwnerRef, spec: VolumeSpec, cookie: string | null, call = next()) =>
        copy.call(volumes, ref, spec, cookie, call),
    }),
    destroy: (ref, cookie, order, call = next()) => volumes.destroy(ref, cookie, order, call),
  });
}
