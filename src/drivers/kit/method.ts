import type { Call, PlatformDriver, VolumeDriver } from '../../orchestrator/model/platform-driver.ts';

type WithoutCall<Args extends readonly unknown[]> =
  Required<Args> extends [...infer Others, Call] ? Others : Args;

type MethodOf<Platform, Method> = Method extends (...args: infer Args) => infer Answer
  ? (platform: Platform, ...args: WithoutCall<Args>) => Answer
  : never;

/** A method of the port as a function of the driver's platform, which has the limits of the call. */
export type MachineMethod<Platform, Name extends keyof PlatformDriver> = MethodOf<
  Platform,
  Required<PlatformDriver>[Name]
>;
export type VolumeMethod<Platform, Name extends keyof VolumeDriver> = MethodOf<
  Platform,
  Required<VolumeDriver>[Name]
>;
