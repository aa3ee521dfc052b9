import { z } from 'zod';
import { sshKeyTextSchema } from '../../contract/ssh-key.ts';
import { idSchema, timestampSchema } from './values.ts';

/** M: SSH key. */
export const sshKeySchema = z
  .object({
    id: z.string(),
    userId: z.string(),
    teamId: z.string(),
    name: z.string(),
    publicKey: z.string(),
    fingerprint: z.string().meta({ description: 'As OpenSSH prints it.', example: 'SHA256:…' }),
    createdAt: timestampSchema,
  })
  .meta({ id: 'SshKey' });
export type SshKey = z.infer<typeof sshKeySchema>;

export const createSshKeySchema = z
  .object({
    name: z.string().min(1).max(255),
    publicKey: sshKeyTextSchema,
    teamId: idSchema.optional(),
  })
  .meta({ id: 'CreateSshKey' });
export type CreateSshKey = z.infer<typeof createSshKeySchema>;

/** M: the 200 response when a key or a volume is deleted. */
export const successSchema = z.object({ success: z.literal(true) }).meta({ id: 'Success' });
