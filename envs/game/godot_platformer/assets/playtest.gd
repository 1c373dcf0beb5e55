extends Node2D
# Plays scenarios, one after the other, on levels made from their numbers, and records where the player is after each
# physics tick. PLAYTEST_IN names the scenarios, PLAYTEST_OUT the record, PLAYTEST_PNG a picture of the last scenario.
#
# An event is [mark, offset, action, 1 pressed or 0 released]. It happens just before the player's physics process of the
# tick that lies `offset` ticks after the mark. The mark "start" is tick 0; every other one is the first tick after which
# the player fulfils its condition, ["x" or "y", "above" or "below", value, first tick that counts]. A mark "2:land" is
# that of scenario 2, which was played before.

const ACTIONS = ["move_left", "move_right", "move_down", "jump"]
const PAUSE_TICKS = 3

var player_scene = load("res://player.tscn")
var scenarios = []
var records = []
var index = -1
var tick = 0
var pause = 0
var marks = {}
var trail = []
var level = null
var player = null
var recorder = null
var finishing = 0


func _ready():
	OS.low_processor_usage_mode_sleep_usec = 1
	for action in ACTIONS:
		if not InputMap.has_action(action):
			InputMap.add_action(action)
	var file = File.new()
	if file.open(OS.get_environment("PLAYTEST_IN"), File.READ) != OK:
		print("PLAYTEST_IN names no readable file")
		get_tree().quit(2)
		return
	scenarios = JSON.parse(file.get_as_text()).result
	file.close()
	recorder = Node.new()
	recorder.set_script(load("res://recorder.gd"))
	recorder.process_priority = 1000
	recorder.target = self
	add_child(recorder)
	_begin()


func _begin():
	index += 1
	tick = 0
	marks = {"start": 0}
	trail = []
	var scenario = scenarios[index]
	level = Node2D.new()
	add_child(level)
	for box in scenario.get("boxes", []):
		_solid([Vector2(box[0], box[1]), Vector2(box[0] + box[2], box[1]),
				Vector2(box[0] + box[2], box[1] + box[3]), Vector2(box[0], box[1] + box[3])], false)
	for polygon in scenario.get("polygons", []):
		var points = []
		for point in polygon:
			points.append(Vector2(point[0], point[1]))
		_solid(points, false)
	for platform in scenario.get("platforms", []):
		_solid([Vector2(platform[0], platform[1]), Vector2(platform[0] + platform[2], platform[1]),
				Vector2(platform[0] + platform[2], platform[1] + 6), Vector2(platform[0], platform[1] + 6)], true)
	player = player_scene.instance()
	player.position = Vector2(scenario["start"][0], scenario["start"][1])
	add_child(player)
	records.append({"track": [], "marks": marks})


func _solid(points, one_way):
	var body = StaticBody2D.new()
	body.collision_layer = 2 if one_way else 1
	var shape = CollisionShape2D.new()
	shape.one_way_collision = one_way
	if one_way:
		# a one-way shape faces its own up, so it must be a rectangle
		var rectangle = RectangleShape2D.new()
		rectangle.extents = (points[2] - points[0]) / 2
		shape.shape = rectangle
		body.position = (points[0] + points[2]) / 2
	else:
		var convex = ConvexPolygonShape2D.new()
		convex.points = PoolVector2Array(points)
		shape.shape = convex
	body.add_child(shape)
	level.add_child(body)


func _physics_process(_delta):
	if finishing > 0:
		finishing += 1
		return
	if pause > 0:
		pause -= 1
		if pause == 0:
			_begin()
		else:
			return
	for event in scenarios[index].get("events", []):
		var at = _tick_of(event[0])
		if at >= 0 and at + int(event[1]) == tick:
			if event[3]:
				Input.action_press(event[2])
			else:
				Input.action_release(event[2])


func _tick_of(mark):
	var parts = mark.split(":")
	if parts.size() == 2:
		return records[int(parts[0])]["marks"].get(parts[1], -1)
	return marks.get(mark, -1)


func record():
	if finishing > 0 or pause > 0:
		return
	var at = player.global_transform.origin
	trail.append(at)
	records[index]["track"].append([at.x, at.y])
	var conditions = scenarios[index].get("marks", {})
	for name in conditions:
		var wanted = conditions[name]
		var value = at.x if wanted[0] == "x" else at.y
		var holds = value > wanted[2] if wanted[1] == "above" else value < wanted[2]
		if not marks.has(name) and tick >= wanted[3] and holds:
			marks[name] = tick
	tick += 1
	if tick >= int(scenarios[index]["ticks"]):
		_end()


func _end():
	for action in ACTIONS:
		Input.action_release(action)
	if index + 1 < scenarios.size():
		level.free()
		player.free()
		pause = PAUSE_TICKS
		return
	var file = File.new()
	if file.open(OS.get_environment("PLAYTEST_OUT"), File.WRITE) == OK:
		file.store_string(JSON.print(records))
		file.close()
	finishing = 1
	if OS.get_environment("PLAYTEST_PNG") == "":
		get_tree().quit()
	else:
		_frame()
		update()


func _frame():
	# the whole of the way and the ground around it
	var low = trail[0]
	var high = trail[0]
	for at in trail:
		low = Vector2(min(low.x, at.x), min(low.y, at.y))
		high = Vector2(max(high.x, at.x), max(high.y, at.y))
	low -= Vector2(90, 90)
	high += Vector2(90, 90)
	var size = get_viewport().size
	var scale = min(size.x / (high.x - low.x), size.y / (high.y - low.y))
	get_viewport().canvas_transform = Transform2D(0, Vector2(0, 0)).scaled(Vector2(scale, scale)).translated(
			-(low + high) / 2 + size / 2 / scale)


func _process(_delta):
	if finishing > 8:
		var picture = get_viewport().get_texture().get_data()
		picture.flip_y()
		picture.save_png(OS.get_environment("PLAYTEST_PNG"))
		get_tree().quit()


func _draw():
	if finishing == 0:
		return
	var scenario = scenarios[index]
	for box in scenario.get("boxes", []):
		draw_rect(Rect2(box[0], box[1], box[2], box[3]), Color(0.36, 0.40, 0.47))
	for polygon in scenario.get("polygons", []):
		var points = PoolVector2Array()
		for point in polygon:
			points.append(Vector2(point[0], point[1]))
		draw_colored_polygon(points, Color(0.36, 0.40, 0.47))
	for platform in scenario.get("platforms", []):
		draw_rect(Rect2(platform[0], platform[1], platform[2], 6), Color(0.85, 0.65, 0.25))
	var half = player.get_node("Shape").shape.extents
	for i in range(0, trail.size(), 6):
		draw_rect(Rect2(trail[i] - half, half * 2), Color(0.35, 0.75, 0.95, 0.35), false)
	for i in range(trail.size()):
		draw_circle(trail[i], 1.6, Color(0.95, 0.45, 0.35) if i % 10 == 0 else Color(0.55, 0.85, 0.95))
