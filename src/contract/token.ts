import { z } from 'zod';

/** O: POST /auth/token. Exactly one of `api_key`, or `username` with `password` (settled). */
export const tokenRequestSchema = z
  .object({
    api_key: z.string().min(1).max(512).optional(),
    username: z.string().min(1).max(255).optional(),
    password: z.string().min(1).max(1024).optional(),
  })
  .refine(
    ({ api_key, username, password }) =>
      api_key === undefined
        ? username !== undefined && password !== undefined
        : username === undefined && password === undefined,
    'expected exactly one of: api_key; username and password',
  )
  .meta({ id: 'TokenRequest' });
export type TokenRequest = z.infer<typeof tokenRequestSchema>;

export const tokenSchema = z
  .object({
    access_token: z.string().min(1),
    token_type: z.literal('Bearer'),
    expires_in: z.int().positive().meta({ description: 'Seconds until the token expires.' }),
  })
  .meta({ id: 'Token' });
export type Token = z.infer<typeof tokenSchema>;
