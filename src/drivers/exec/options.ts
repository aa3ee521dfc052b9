import { z } from 'zod';
import { isLoopback } from '../../contract/loopback.ts';
import type { DriverOptions } from '../kit/driver-definition.ts';

/** Names of environment variables, never their values. */
const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'expected the name of an environment variable');

/** A token, and the cloud-init of tenants, go over it. */
const isSafe = (text: string): boolean => {
  const url = URL.parse(text);
  return url === null || url.protocol === 'https:' || isLoopback(url.hostname);
};

/** What an operator writes under `platform:` in berth.yaml. */
export const execConfigSchema = z
  .strictObject({
    driver: z.literal('exec'),
    /** The program and its arguments, run without a shell. */
    command: z.array(z.string().min(1).max(4096)).min(1).max(100).optional(),
    /** Where a driver answers over HTTP. */
    url: z
      .url({ protocol: /^https?$/, error: 'expected an address such as https://driver.example.com/berth' })
      .refine(isSafe, 'expected https: plain http is for this machine only')
      .refine((text) => {
        const url = URL.parse(text);
        return url === null || (url.username === '' && url.password === '' && url.hash === '');
      }, 'expected no user, password or fragment: the token comes from the environment')
      .optional(),
    /** What the program is given of Berth's environment, beside PATH, HOME, LANG and TZ. */
    environment: z.array(variableName).max(100).default([]),
    /** Which environment variable has the bearer token for `url`. */
    token_env: variableName.default('BERTH_DRIVER_TOKEN'),
    /** How long a request may take; under a quarter of `reconcile.lease_s`. */
    timeout_s: z.number().min(0.1).max(20).default(7),
    /** How long the driver has at the start of Berth until it has answered `info`. */
    start_timeout_s: z.number().min(0.1).max(600).default(30),
    /** How long the program has for its end before it is killed. */
    stop_timeout_s: z.number().min(0).max(60).default(5),
  })
  .refine(({ command, url }) => (command === undefined) !== (url === undefined), {
    error: 'expected either command or url',
    path: ['command'],
  });

export type ExecConfig = z.infer<typeof execConfigSchema> & DriverOptions;

/** What an offer says under `machine:` is the driver's own business, and is handed to it as it is. */
export const execOfferSchema = z.record(z.string(), z.json());
