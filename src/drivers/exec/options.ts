import { z } from 'zod';
import { isLoopback } from '../../contract/loopback.ts';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import type { DriverOptions } from '../kit/driver-definition.ts';

/** The name of an environment variable, never its value. */
const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'expected the name of an environment variable');

/** Whether an address is safe for the token and the tenants' cloud-init, which are sent to it. */
const isSafe = (text: string): boolean => {
  const url = URL.parse(text);
  return url === null || url.protocol === 'https:' || isLoopback(url.hostname);
};

/** The keys under `platform:` in berth.yaml. */
export const execConfigSchema = z
  .strictObject({
    driver: z.literal('exec'),
    /** The program and its arguments, run without a shell. */
    command: z.array(z.string().min(1).max(4096)).min(1).max(100).optional(),
    /** The address of a driver that answers over HTTP. */
    url: z
      .url({ protocol: /^https?$/, error: 'expected an address such as https://driver.example.com/berth' })
      .refine(isSafe, 'expected https: plain http is allowed for this machine only')
      .refine((text) => {
        const url = URL.parse(text);
        return url === null || (url.username === '' && url.password === '' && url.hash === '');
      }, 'expected no user, password or fragment: the token comes from the environment')
      .optional(),
    /** Environment variables passed to the program besides PATH, HOME, LANG and TZ. */
    environment: z.array(variableName).max(100).default([]),
    /** The environment variable with the bearer token for `url`. */
    token_env: variableName.default('BERTH_DRIVER_TOKEN'),
    /** Time limit of a request; must be under a quarter of the lease of a step. */
    timeout_s: z
      .number()
      .min(0.1)
      .max(20)
      .default(Math.floor(DEFAULT_CALL_MS / 1_000)),
  })
  .refine(({ command, url }) => (command === undefined) !== (url === undefined), {
    error: 'expected either command or url',
    path: ['command'],
  });

export type ExecConfig = z.infer<typeof execConfigSchema> & DriverOptions;

/** An offer's `machine:`, passed to the driver unchanged. */
export const execOfferSchema = z.record(z.string(), z.json());
