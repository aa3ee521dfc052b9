import type { FailureCode } from './platform-driver.ts';

/** The driver codes after which the same step cannot succeed. */
const finalTexts = {
  capacity: 'The provider has no capacity left for this instance.',
  quota: 'The provider has no quota left for this instance.',
  invalid: 'The platform refused the configuration of this instance.',
  unsupported: 'The platform does not support the configuration of this instance.',
  image_missing: 'The image of this instance is not available.',
  boot_failed: 'The machine of this instance did not boot.',
  device_fault: 'A device of the machine failed, such as its GPU.',
  disk_lost: 'The disk of this instance is lost.',
} satisfies Partial<Record<FailureCode, string>>;
export type FinalCode = keyof typeof finalTexts;

/**
 * Why an instance goes to ERROR, and the sentence that its tenant reads as `error`. The sentence names no host or
 * platform and has no advice for an operator. The driver's own words are in the history and the log.
 */
export const tenantTexts = {
  ...finalTexts,
  late: 'The instance was not ready in time.',
  ssh: 'SSH with the injected keys was not ready in time; check the image and cloud_init.',
  machine_failed: 'The machine of this instance failed.',
  machine_gone: 'The machine of this instance no longer exists.',
  powered_off: 'The machine powered itself off before SSH was ready.',
  not_stopped: 'The instance could not be stopped.',
} as const;
export type FailureCause = keyof typeof tenantTexts;

export const failureCauses = Object.keys(tenantTexts) as FailureCause[];

export function isFinalCode(code: FailureCode): code is FinalCode {
  return code in finalTexts;
}
