/** What few videos need. */
export function VideoOptionFields() {
  return (
    <details>
      <summary>Options</summary>
      <div class="form">
        <div class="two">
          <label class="field">
            <span>Name</span>
            <input class="input" name="name" maxLength={200} placeholder="in the list of jobs" />
          </label>
          <label class="field">
            <span>Width</span>
            <input
              class="input"
              type="number"
              name="width"
              min={2}
              max={7680}
              placeholder="that of the frames"
            />
          </label>
          <label class="field">
            <span>Encoded</span>
            <select class="input" name="encode">
              <option value="">on the host if it can, else here</option>
              <option value="host">on the host</option>
              <option value="worker">here</option>
            </select>
          </label>
          <label class="field">
            <span>Drawn into a corner</span>
            <select class="input" name="label">
              <option value="">nothing</option>
              <option value="frame">the number of the frame</option>
              <option value="name">the name of its file</option>
            </select>
          </label>
          <label class="field">
            <span>Behind what is transparent</span>
            <input class="input" type="color" name="background" defaultValue="#000000" />
          </label>
        </div>
      </div>
    </details>
  );
}
