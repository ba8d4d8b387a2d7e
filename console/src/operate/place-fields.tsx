import type { HostPlace } from '../service/operations.ts';

type Place = Required<HostPlace>;

/** Where a machine is reached. */
export const PlaceFields = ({ place }: { place?: Place }) => (
  <>
    <div class="two">
      <label class="field">
        <span>Address</span>
        <input
          class="input"
          name="address"
          required
          maxLength={253}
          placeholder="lab.example.org"
          defaultValue={place?.address}
        />
      </label>
      <label class="field">
        <span>Port</span>
        <input
          class="input"
          name="port"
          type="number"
          min="1"
          max="65535"
          defaultValue={place?.port ?? 22}
        />
      </label>
    </div>
    <label class="check">
      <input type="checkbox" name="private" defaultChecked={place?.private} />
      <span>Its address is in a private network, or this machine</span>
    </label>
  </>
);

export const readPlace = (fields: FormData): Place => ({
  address: String(fields.get('address') ?? '').trim(),
  port: Number(fields.get('port')) || 22,
  private: fields.has('private'),
});
